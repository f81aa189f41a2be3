#include "io/events/event_file.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <unistd.h>

#include "io/compression/crc32c.h"

namespace cytra::io {
namespace {

/// Writes a little-endian number. (Every machine that LibTorch runs on is little-endian.)
template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// A protobuf message; fields in the order of their numbers, as protobuf itself writes them.
class Message {
 public:
  Message& number(int field, int64_t value) {  // int64, int32, bool, enum
    if (value == 0) return *this;              // proto3's default is left out
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(int field, double value) {
    return value == 0 && !std::signbit(value) ? *this : chosen_real(field, value);
  }
  // Adds a member of a oneof, which is written whatever its value.
  Message& chosen_real(int field, double value) { return fixed(field, 1, raw(value)); }
  Message& chosen_float(int field, float value) { return fixed(field, 5, raw(value)); }
  Message& bytes(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.text_); }
  Message& packed(int field, const std::vector<double>& values) {
    if (values.empty()) return *this;
    return bytes(field,
                 {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)});
  }
  const std::string& text() const { return text_; }

 private:
  Message& fixed(int field, uint64_t wire_type, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | wire_type);
    text_ += value;
    return *this;
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

/// Makes a Summary of one value.
std::string summary(const Message& value) {
  return Message().message(1, value).text();
}

Message metadata(const std::string& plugin, std::string_view content) {
  Message data;
  data.bytes(1, plugin);
  if (!content.empty()) data.bytes(2, content);
  return Message().message(1, data);
}

std::string hparams_summary(const std::string& tag, int field, const Message& content) {
  Message value;
  value.bytes(1, tag).message(9, metadata("hparams", Message().message(field, content).text()));
  return summary(value);
}

bool is_number(const config::Node& node) {
  return node.kind == config::Kind::boolean || node.kind == config::Kind::integer ||
         node.kind == config::Kind::real;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string record(const Message& event) {
  // A CRC of data that holds CRCs is weak: the format stores it rotated and shifted.
  const auto masked = [](std::string_view bytes) {
    const uint32_t crc = crc32c(bytes);
    return raw<uint32_t>(((crc >> 15) | (crc << 17)) + 0xA282EAD8U);
  };
  const std::string length = raw<uint64_t>(event.text().size());
  return length + masked(length) + event.text() + masked(event.text());
}

std::string file_path(const std::string& folder) {
  static std::atomic<int> serial{0};
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}.cytra",
                     folder,
                     static_cast<int64_t>(now()),
                     host,
                     ::getpid(),
                     serial++);
}

/// The edges of the buckets, ascending: bucket i is [edge i, edge i + 1).
const std::vector<double>& edges() {
  static const std::vector<double> all = [] {
    std::vector<double> positive;
    for (double edge = 1e-12; edge < 1e20; edge *= 1.1) positive.push_back(edge);
    std::vector<double> both;
    for (auto edge = positive.rbegin(); edge != positive.rend(); ++edge) both.push_back(-*edge);
    both.push_back(0);
    both.insert(both.end(), positive.begin(), positive.end());
    return both;
  }();
  return all;
}

}  // namespace

std::string scalar_summary(const std::map<std::string, double>& values) {
  Message all;
  for (const auto& [tag, value] : values)
    all.message(1, Message().bytes(1, tag).chosen_float(2, static_cast<float>(value)));
  return all.text();
}

std::string image_summary(const std::string& tag, std::string_view png) {
  // IHDR comes first: width at 16, height at 20, both big-endian; type of colour at 25.
  const auto number = [&](std::size_t at) {
    int64_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      value = value << 8 | static_cast<unsigned char>(png.at(i));
    return value;
  };
  Message image;
  image.number(1, number(20))
      .number(2, number(16))
      .number(3, png.at(25) == 0 ? 1 : 3)
      .bytes(4, png);
  return summary(Message().bytes(1, tag).message(4, image));
}

std::string histogram_summary(const std::string& tag, const Histogram& histogram) {
  Message histo;
  histo.real(1, histogram.min).real(2, histogram.max).real(3, histogram.count);
  histo.real(4, histogram.sum).real(5, histogram.sum_squares);
  histo.packed(6, histogram.limits).packed(7, histogram.counts);
  return summary(Message().bytes(1, tag).message(5, histo));
}

std::string text_summary(const std::string& tag, const std::string& text) {
  constexpr int kString = 7;  // DT_STRING
  const Message shape = Message().message(2, Message().number(1, 1));
  const Message tensor = Message().number(1, kString).message(2, shape).bytes(8, text);
  Message value;
  value.bytes(1, tag + "/text_summary").message(8, tensor).message(9, metadata("text", ""));
  return summary(value);
}

std::string session_start_summary(const HyperParameters& parameters) {
  Message info;
  for (const auto& [name, node] : parameters) {
    if (node.is_null()) continue;
    Message value;  // google.protobuf.Value
    if (node.kind == config::Kind::boolean) {
      value.chosen_real(2, node.boolean ? 1 : 0);
    } else if (is_number(node)) {
      value.chosen_real(2, node.as<double>());
    } else {
      value.bytes(3, node.kind == config::Kind::string ? node.string : config::to_json(node));
    }
    info.message(1, Message().bytes(1, name).message(2, value));
  }
  return hparams_summary("_hparams_/session_start_info", 3, info);
}

std::string experiment_summary(const HyperParameters& parameters,
                               const std::vector<std::string>& metrics) {
  constexpr int kText = 1, kNumber = 3;  // DataType
  Message experiment;
  for (const auto& [name, node] : parameters) {
    if (node.is_null()) continue;
    experiment.message(4, Message().bytes(1, name).number(4, is_number(node) ? kNumber : kText));
  }
  for (const std::string& tag : metrics)
    experiment.message(5, Message().message(1, Message().bytes(2, tag)));
  return hparams_summary("_hparams_/experiment", 2, experiment);
}

std::string session_end_summary(bool success) {
  return hparams_summary("_hparams_/session_end_info", 4, Message().number(1, success ? 1 : 2));
}

EventFile::EventFile(const std::string& folder, int64_t first_step) : file_(file_path(folder)) {
  file_.append(record(Message().real(1, now()).bytes(3, "brain.Event:2")));
  const Message start = Message().number(1, 1);  // SessionLog::START
  file_.append(record(Message().real(1, now()).number(2, first_step).message(7, start)));
}

void EventFile::add(std::string_view summary, int64_t step) {
  file_.append(record(Message().real(1, now()).number(2, step).bytes(5, summary)));
}

Histogram histogram_of(std::span<const float> values) {
  const std::vector<double>& edge = edges();
  std::vector<double> counts(edge.size() - 1);
  Histogram histogram;
  histogram.min = std::numeric_limits<double>::infinity();
  histogram.max = -histogram.min;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    histogram.min = std::min(histogram.min, value);
    histogram.max = std::max(histogram.max, value);
    histogram.sum += value;
    histogram.sum_squares += value * value;
    histogram.count += 1;
    if (value < edge.front() || value > edge.back()) continue;
    const auto next = std::upper_bound(edge.begin(), edge.end() - 1, value);  // numpy: the last
    counts[static_cast<std::size_t>(next - edge.begin()) - 1] += 1;           // bucket has its end
  }
  const auto is_taken = [](double number) { return number > 0; };
  const auto first = std::find_if(counts.begin(), counts.end(), is_taken) - counts.begin();
  if (first == static_cast<std::ptrdiff_t>(counts.size())) {
    if (histogram.count == 0) histogram.min = histogram.max = 0;
    return histogram;
  }
  const auto last = counts.rend() - std::find_if(counts.rbegin(), counts.rend(), is_taken);
  // An empty bucket on the left shows where the first one begins.
  histogram.counts.push_back(0);
  histogram.counts.insert(histogram.counts.end(), counts.begin() + first, counts.begin() + last);
  histogram.limits.assign(edge.begin() + first, edge.begin() + last + 1);
  return histogram;
}

}  // namespace cytra::io
