#pragma once
// Of unicode.cpp alone.

namespace cytra {

struct LetterAndMark {
  char16_t whole, letter, mark;  // 0: no mark
};
extern const LetterAndMark kLettersAndMarks[];  // sorted by `whole`
extern const LetterAndMark* const kLettersAndMarksEnd;

}  // namespace cytra
