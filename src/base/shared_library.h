#pragma once
// Loads shared libraries only when they are needed.
#include <string>

namespace cytra {

/// A shared library, loaded for the rest of the process's life.
class SharedLibrary {
 public:
  /// Which libraries find its functions; `global`: also libraries that are loaded later.
  enum class Symbols { local, global };
  SharedLibrary(const std::string& path, Symbols symbols);
  bool is_loaded() const { return handle_ != nullptr; }
  /// A function by its name; null where the library has none, or is not loaded.
  template <class Function>
  Function find(const char* name) {
    return reinterpret_cast<Function>(address_of(name));
  }
  /// Why the library was not loaded, or why the last find() gave null; else "".
  const std::string& problem() const { return problem_; }

 private:
  void* address_of(const char* name);
  void* handle_;
  std::string problem_;
};

/// The folder of the library, or the program, that holds the code or data at `address`.
std::string folder_of_code(const void* address);
/// The path of `name` in the folder of the library that holds `function`: our libraries are in one
/// folder.
std::string path_beside(auto* function, const std::string& name) {
  return folder_of_code(reinterpret_cast<const void*>(function)) + "/" + name;
}

}  // namespace cytra
