#pragma once
// Which files a run may replace: those that it wrote, and those of the run that it continues.
#include <string>

namespace cytra {

/// Continues the record FOLDER/.written: a line with size and time for each file that is put in
/// place below the folder, written before the file is there; the first line makes the record. The
/// files that it names are this run's own until somebody else changes them. Another user's record
/// counts for that user's files only; this user then writes .written-UID beside it. Throws: what
/// AtomicFile throws; ConfigError for a record that is no regular file.
void keep_own_files(const std::string& folder);
/// Marks what is at `path` as this run's own: it belongs to the run that this one continues, or to
/// a cache.
void own_file(const std::string& path);
/// Whether nothing is at `path`, or an empty folder, or what this run may replace: its own files,
/// a file below cache_folder(), one whose first line says that Cytra keeps it up to date, and a
/// link in the place of a result.
bool may_replace(const std::string& path);
/// Whether a regular file or a folder (no link) is at `path`, with as many bytes as when this run,
/// or the run that it continues, put it there.
bool is_as_written(const std::string& path);
/// Throws: DataError that names `path` unless may_replace(). It is an early check before long
/// work; put_in_place() decides.
void expect_replaceable(const std::string& path);
/// Renames a file or folder, which is this run's own from then on; a folder that it replaces gets
/// the name `temporary`. A file with the same content stays; a result that was cut short, so that
/// the new one begins with all of it, is replaced. Throws: DataError for what must not be
/// replaced; what AtomicFile throws.
void put_in_place(const std::string& temporary, const std::string& path);

}  // namespace cytra
