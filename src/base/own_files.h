#pragma once
// Which files a run may replace: those that it wrote, and those of the run that it goes on with.
#include <string>

namespace cytra {

/// Goes on with FOLDER/.written, a line with size and time for each file that is put in place below
/// the folder, written before the file is there; the first one makes it. What its lines name is
/// this run's own, until somebody else changes it. A record of another user's vouches for that
/// user's files alone, and this one writes .written-UID beside it. Throws: as AtomicFile;
/// ConfigError for a record that is no regular file.
void keep_own_files(const std::string& folder);
/// What is at `path` belongs to the run that this one goes on with, or to a cache.
void own_file(const std::string& path);
/// Nothing is at `path`, an empty folder, or what this run may replace: also a file below
/// cache_folder(), one whose first line says that Cytra keeps it up to date, and a link in the
/// place of a result.
bool may_replace(const std::string& path);
/// What is at `path` is a regular file or a folder, no link, of as many bytes as when it was put in
/// place by this run, or the one that it goes on with.
bool is_as_written(const std::string& path);
/// Throws: DataError that names `path` unless may_replace(). To be told before long work;
/// put_in_place() decides.
void expect_replaceable(const std::string& path);
/// Renames a file or folder, which is this run's own from then on; a folder that it replaces is at
/// `temporary` then. Where a file of the same content is there, that one stays; a result that was
/// cut, so that the new one begins with all of it, is replaced. Throws: DataError
/// for what is not to be replaced; as AtomicFile.
void put_in_place(const std::string& temporary, const std::string& path);

}  // namespace cytra
