#pragma once
// Finds whether all frames of an MP4 or QuickTime file are shown: ISO/IEC 14496-12, 8.6.6.
#include <string>

namespace cytra::io {

/// Whether an edit list may leave out frames of a video track, which FFmpeg then does not return
/// although it counts them. False for other containers.
bool has_edits(const std::string& path);

}  // namespace cytra::io
