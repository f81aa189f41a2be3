#include "io/tiff/handle.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/strings.h"
#include "io/tiff/file.h"

namespace cytra::io {
namespace {

int keep_tiff_error(TIFF*, void* data, const char* module, const char* format, va_list arguments) {
  auto& messages = *static_cast<TiffMessages*>(data);
  if (!messages.error.empty()) return 1;
  char text[300];
  std::vsnprintf(text, sizeof text, format, arguments);
  messages.error =
      printable(module == nullptr ? "" : module, 60) + ": " + printable(text, sizeof text);
  return 1;
}

int note_warning(TIFF*, void* data, const char*, const char* format, va_list arguments) {
  char text[300];
  std::vsnprintf(text, sizeof text, format, arguments);
  if (std::strstr(text, "IO error") != nullptr) static_cast<TiffMessages*>(data)->lost_tag = true;
  return 1;
}

uint64_t seek(uint64_t position, uint64_t end, uint64_t offset, int whence) {
  return whence == SEEK_SET ? offset : (whence == SEEK_CUR ? position : end) + offset;
}

// libtiff's functions for a file.
tmsize_t file_read(thandle_t handle, void* into, tmsize_t count) {
  auto& source = *static_cast<TiffSource*>(handle);
  const auto wanted = static_cast<uint64_t>(std::max<tmsize_t>(count, 0));
  const int64_t got = source.file->read_at(source.position, into, std::min(wanted, source.left));
  if (got > 0) {
    source.position += static_cast<uint64_t>(got);
    source.left -= static_cast<uint64_t>(got);
  }
  return got;
}
tmsize_t file_write(thandle_t, void*, tmsize_t) {
  return -1;
}
uint64_t file_seek(thandle_t handle, uint64_t offset, int whence) {
  auto& source = *static_cast<TiffSource*>(handle);
  return source.position = seek(source.position, source.file->bytes(), offset, whence);
}
uint64_t file_size(thandle_t handle) {
  return static_cast<TiffSource*>(handle)->file->bytes();
}

int file_map(thandle_t handle, void** base, toff_t* bytes) {
  auto& source = *static_cast<TiffSource*>(handle);
  if (source.mapped == nullptr) return 0;
  *base = const_cast<unsigned char*>(source.mapped);
  *bytes = source.file->bytes();
  return 1;
}
void file_unmap(thandle_t, void*, toff_t) {}

// libtiff's functions for memory.
tmsize_t memory_read(thandle_t handle, void* into, tmsize_t count) {
  auto& memory = *static_cast<TiffMemory*>(handle);
  if (memory.position >= memory.bytes.size()) return 0;
  const std::size_t got =
      std::min(static_cast<std::size_t>(count), memory.bytes.size() - memory.position);
  std::memcpy(into, memory.bytes.data() + memory.position, got);
  memory.position += got;
  return static_cast<tmsize_t>(got);
}
tmsize_t memory_write(thandle_t handle, void* from, tmsize_t count) {
  auto& memory = *static_cast<TiffMemory*>(handle);
  const std::size_t end = memory.position + static_cast<std::size_t>(count);
  try {
    if (memory.bytes.size() < end) memory.bytes.resize(end);
  } catch (const std::bad_alloc&) {
    return -1;  // must not cross libtiff's frames
  }
  std::memcpy(memory.bytes.data() + memory.position, from, static_cast<std::size_t>(count));
  memory.position = end;
  return count;
}
uint64_t memory_seek(thandle_t handle, uint64_t offset, int whence) {
  auto& memory = *static_cast<TiffMemory*>(handle);
  return memory.position = seek(memory.position, memory.bytes.size(), offset, whence);
}
uint64_t memory_size(thandle_t handle) {
  return static_cast<TiffMemory*>(handle)->bytes.size();
}

int close_nothing(thandle_t) {
  return 0;
}

using Options = std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)>;
Options options_of(TiffMessages& messages) {
  Options options(TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kLargestTiffBlock);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_tiff_error, &messages);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), note_warning, &messages);
  return options;
}

}  // namespace

TiffHandle open_tiff(TiffSource& source, TiffMessages& messages) {
  const Options options = options_of(messages);
  // Mode m is no mapping: when others truncate a mapped file, reading causes SIGBUS, unless it is
  // watched.
  return TiffHandle(TIFFClientOpenExt("the file",
                                      source.mapped == nullptr ? "rm" : "r",
                                      &source,
                                      file_read,
                                      file_write,
                                      file_seek,
                                      close_nothing,
                                      file_size,
                                      file_map,
                                      file_unmap,
                                      options.get()));
}

TiffHandle open_tiff(TiffMemory& memory, TiffMessages& messages) {
  const Options options = options_of(messages);
  return TiffHandle(TIFFClientOpenExt("memory",
                                      "w",
                                      &memory,
                                      memory_read,
                                      memory_write,
                                      memory_seek,
                                      close_nothing,
                                      memory_size,
                                      nullptr,
                                      nullptr,
                                      options.get()));
}

}  // namespace cytra::io
