#pragma once
// The table of unicode.cpp, which alone uses it.

namespace cytra {

struct LetterAndMark {
  char16_t whole, letter, mark;  // 0: no mark
};
extern const LetterAndMark kLettersAndMarks[];  // sorted by `whole`
extern const LetterAndMark* const kLettersAndMarksEnd;

}  // namespace cytra
