#pragma once
// A model that is named by an address: https://HOST/PATH/NAME.ckpt@sha256:DIGITS.
#include <string>

namespace cytra::cli {

/// Whether what was given for a file is an address.
bool is_address(const std::string& path);

/// The file of an address in the folder models/DIGITS of the cache (base/cache_folder.h). Where it
/// isn't there yet, the program curl fetches it: at most 16 GB, by https alone, going on where an
/// earlier run was interrupted; another run that fetches the same is waited for. `key`: the option
/// that names it. Throws: ConfigError for an address without a checksum or that leads to no file;
/// DataError where the checksum is another one; IoError without curl or a connection.
std::string fetched_model(const std::string& key, const std::string& address);

}  // namespace cytra::cli
