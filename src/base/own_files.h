#pragma once
// Which files a run may replace: those that it wrote, and those of the run that it goes on with.
#include <string>

namespace cytra {

/// Goes on with FOLDER/.written, a line with size and time for each file that is put in place below
/// the folder, written before the file is there; the first one makes it. What its lines name is
/// this run's own, until somebody else changes it. Throws: as AtomicFile.
void keep_own_files(const std::string& folder);
/// What is at `path` belongs to the run that this one goes on with, or to a cache.
void own_file(const std::string& path);
/// Nothing is at `path`, an empty folder, or what this run may replace: also a file below
/// cache_folder(), and one whose first line says that Cytra keeps it up to date.
bool may_replace(const std::string& path);
/// Throws: DataError that names `path` unless may_replace(). To be told before long work;
/// put_in_place() decides.
void expect_replaceable(const std::string& path);
/// Renames a file or folder, which is this run's own from then on; a folder that it replaces is at
/// `temporary` then. Where a file of the same content is there, that one stays. Throws: DataError
/// for what is not to be replaced; as AtomicFile.
void put_in_place(const std::string& temporary, const std::string& path);

}  // namespace cytra
