#include "app/serve/models/image_request.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "app/serve/http/form_data.h"
#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "inference/predictor/windowed_model.h"
#include "pipelines/job/inputs.h"
#include "tasks/annotation_targets.h"

namespace cytra::app {

std::vector<Parameter> image_parameters(std::vector<Parameter> own) {
  const std::vector<Parameter> all{
      {"save", "form of the result: mask, probability, logits, labels, ..."},
      {"threshold", "threshold of a mask's probability, 0 to 1"},
      {"head", "of a model with several outputs, which one"},
      {"filename", "name of the image; its ending tells the format of the result"},
      {"scene", "of a file with several"},
      {"timepoint", "of a time lapse"},
      {"timeout", "seconds until the answer"},
      kRequestId};
  own.insert(own.begin(), all.begin(), all.end());
  return own;
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kResultName = "/.result";  // safe_name() gives no client this one

/// Media types of files that are no image's, or not its alone, by the ending of a name.
const std::vector<std::pair<const char*, const char*>> kOtherMediaTypes{
    {".nii.gz", "application/gzip"},
    {".csv", "text/csv"},
    {".geojson", "application/geo+json"},
    {".zip", "application/zip"}};

const io::Format* format_by_content(const std::string& content, const std::string& path) {
  const std::string head = content.substr(0, io::kHeadBytes);
  for (const io::Format& format : io::formats())
    if (!format.are_folders && format.probe(head, path)) return &format;
  return nullptr;
}

/// The formats of results that are one file: "auto" and the names.
std::vector<std::string> result_formats() {
  std::vector<std::string> names = io::output_choices();
  std::erase_if(names, [](const std::string& name) {
    const io::Format* format = io::find_format(name);
    return format != nullptr && format->are_folders;
  });
  return names;
}

/// The format that the client accepts, the first of the media types that it names; "auto" for any.
std::string format_accepted(const std::string& accept) {
  if (accept.find("*/*") != std::string::npos) return "auto";
  std::string name = "auto";
  std::size_t first = accept.find("application/gzip");
  if (first != std::string::npos) name = "nifti";
  for (const io::Format& format : io::formats()) {
    if (format.media_type.empty() || format.create == nullptr) continue;
    const std::size_t at = accept.find(format.media_type);
    if (at < first) {
      first = at;
      name = format.name;
    }
  }
  return name;
}

/// A parameter of the query that is a number. Throws: HttpError that names it.
std::optional<double> number_in(const HttpHead& head,
                                const std::string& name,
                                double low,
                                double high) {
  if (head.query.count(name) == 0) return std::nullopt;
  const std::string text = head.parameter(name);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0' && number >= low && number <= high) return number;
  throw HttpError(
      400, "{}={}: expected a number from {} to {}", name, printable(text, 40), low, high);
}

void expect_one_of(const char* name,
                   const std::string& value,
                   const std::vector<std::string>& known) {
  if (!contains(known, value))
    throw HttpError(400, "{}={}: unknown.{}", name, printable(value, 40), suggestion(value, known));
}

}  // namespace

std::string safe_name(const std::string& given) {
  const std::string name = given.substr(given.find_last_of("/\\") + 1);
  const bool is_fine =
      !name.empty() && name.size() <= 100 && name.front() != '.' &&
      std::ranges::all_of(name, [](char c) { return !is_control(c) && c != '"' && c != '%'; });
  return is_fine ? name : "";
}

const io::Format* write_image(const std::string& path, const std::string& content) {
  const std::string name = fs::path(path).filename().string();
  const io::Format* format = format_by_content(content, path);
  if (format != nullptr && format->media_type.empty())
    throw HttpError(415, "{}: {} is not taken by the server", name, format->title);
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw IoError(fmt::format("{}: can't be written: {}", name, std::strerror(errno)));
  if (const auto others = io::other_files_of(path); !others.empty()) {
    throw HttpError(422,
                    "{}: names the file {}, too; expected one that holds all",
                    name,
                    printable(fs::path(others.front()).filename().string()));
  }
  return format;
}

std::optional<int64_t> whole_number_in(const HttpHead& head, const std::string& name) {
  const std::optional<double> number = number_in(head, name, 0, 1e9);
  if (!number) return std::nullopt;
  if (*number == std::floor(*number)) return static_cast<int64_t>(*number);
  throw HttpError(400, "{}={}: expected a whole number", name, printable(head.parameter(name), 40));
}

HttpResponse attachment(std::string content, const std::string& name) {
  HttpResponse response{200, std::move(content), "application/octet-stream"};
  if (const io::Format* format = io::format_of_name(name);
      format != nullptr && !format->media_type.empty())
    response.type = format->media_type;
  for (const auto& [ending, type] : kOtherMediaTypes)
    if (name.ends_with(ending)) response.type = type;
  response.headers.emplace_back("Content-Disposition",
                                fmt::format("attachment; filename=\"{}\"", name));
  return response;
}

FileWork::FileWork(ImageFile file, RequestFolders& folders)
    : file_(std::move(file)), folder_(folders.take()) {
  expect_one_of("output", file_.output, {"image", "overlay", "table", "geojson", "imagej_roi"});
  expect_one_of("format", file_.format, result_formats());
}

std::shared_ptr<const inference::ModelInput> FileWork::read(const PreparedModel& model) {
  take_file();
  const inference::WindowedModel& windowed = model.predictor.windowed();
  const std::string key = pipelines::source_key(model.predictor);
  data::Sample sample;
  sample.id = name_;
  sample.folder = folder_->path();
  data::Source& source = sample.sources[key];
  source.path = path_;
  source.selection.scene = file_.scene;
  source.selection.timepoint = file_.timepoint;
  source.time_is_channel = pipelines::wants_of(model.predictor, config::Node()).time_is_channel;
  const pipelines::PartsToTake chosen = pipelines::parts_to_take(model.predictor);
  if (const auto scenes = pipelines::scenes_of(sample, key, chosen).size(); scenes > 1)
    throw HttpError(422, "{} scenes, expected the parameter scene", scenes);
  const pipelines::Frames frames = pipelines::frames_of(sample, key, chosen);
  if (frames.size() > 1) {
    throw HttpError(422, "{} time points, expected the parameter timepoint", frames.size());
  }
  return std::make_shared<const inference::ModelInput>(
      windowed.transforms.apply(frames[0], windowed.x_key, {}, inference::by_rows_from()));
}

inference::ImageResult::Outputs FileWork::outputs(const PreparedModel& model) {
  inference::OutputPlace place;
  place.stem = folder_->path() + kResultName;
  place.source = path_;
  place.format = file_.format;
  const config::Node& task = model.predictor.model().config.at("task");
  if (tasks::has_class_names(task))
    place.class_name = [&task](int64_t number) { return tasks::class_name_of(task, number); };
  inference::ImageResult::Outputs outputs;
  outputs.push_back(inference::make_result_output(file_.output, place));
  return outputs;
}

HttpResponse FileWork::respond(const inference::ImageResult& result) {
  if (result.files().empty()) throw HttpError(422, "output={}: the result has none", file_.output);
  const std::string& path = result.files().front().second;
  const std::string ending = path.substr((folder_->path() + kResultName).size());
  return attachment(read_file(path, SIZE_MAX), io::stem_of(name_) + ending);
}

HttpError FileWork::told(int status, std::string text) const {
  if (!fs::exists(folder_->path())) return {500, "the server's folder for files was removed"};
  const std::string folder = folder_->path() + "/";
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.erase(at, folder.size());
  return {status, text};
}

/// Puts the content where it can be read as a file.
void FileWork::take_file() {
  if (!file_.path.empty()) {
    path_ = file_.path;
    name_ = fs::path(path_).filename().string();
    return;
  }
  name_ = safe_name(file_.name);
  const io::Format* format =
      format_by_content(file_.content, folder_->path() + "/" + (name_.empty() ? "image" : name_));
  if (name_.empty()) {
    std::string ending = format == nullptr ? "" : format->endings.front();
    for (const io::Format& other : io::formats())
      if (!file_.type.empty() && file_.type == other.media_type) ending = other.endings.front();
    for (const auto& [own, type] : kOtherMediaTypes)
      if (file_.type == type) ending = own;
    name_ = "image" + ending;
  }
  path_ = folder_->path() + "/" + name_;
  write_image(path_, std::exchange(file_.content, {}));
}

const std::vector<Parameter>& predict_parameters() {
  static const std::vector<Parameter> all =
      image_parameters({{"output", "image, overlay, table (CSV), geojson or imagej_roi"},
                        {"format", "of an image: " + join(result_formats(), ", ")}});
  return all;
}

ImageRequest image_request_of(HttpExchange& exchange, const std::vector<Parameter>& parameters) {
  const HttpHead& head = exchange.head;
  std::vector<std::string> known;
  for (const Parameter& own : parameters) known.emplace_back(own.name);
  for (const auto& [name, value] : head.query) {
    if (!contains(known, name))
      throw HttpError(400, printable(name, 40) + ": unknown parameter." + suggestion(name, known));
  }
  if (exchange.body.empty()) throw HttpError(400, "the body is empty, expected an image's file");
  ImageFile file;
  file.type = in_small_letters(trim(split(head.header("content-type") + ";", ';').front()));
  file.name = head.parameter("filename", filename_in(head.header("content-disposition")));
  file.output = head.parameter("output", "image");
  file.format = head.parameter("format", format_accepted(head.header("accept")));
  file.scene = whole_number_in(head, "scene").value_or(-1);
  file.timepoint = whole_number_in(head, "timepoint").value_or(-1);
  AskedResult asked{
      head.parameter("head"), head.parameter("save"), number_in(head, "threshold", 0, 1)};
  if (const auto seconds = number_in(head, "timeout", 0.001, 1e6)) exchange.expire_in(*seconds);
  if (file.type.starts_with("multipart/")) {  // of a browser, or curl -F image=@FILE
    std::vector<FormPart> parts =
        parse_form(head.header("content-type"), std::exchange(exchange.body, {}));
    FormPart& part = file_part(parts);
    for (const FormPart& other : parts)
      if (other.filename.empty())
        throw HttpError(400,
                        "multipart: the field {}: expected a file alone; parameters "
                        "belong in the address, as ?threshold=0.5",
                        printable(other.name, 40));
    if (head.query.count("filename") == 0) file.name = part.filename;
    file.type = part.type;
    file.content = std::move(part.content);
  } else {
    file.content = std::move(exchange.body);
  }
  return {std::move(file), std::move(asked)};
}

void predict_image(ServedModel& model,
                   const std::shared_ptr<HttpExchange>& exchange,
                   RequestFolders& folders) {
  ImageRequest request = image_request_of(*exchange, predict_parameters());
  model.submit(
      request.asked, std::make_unique<FileWork>(std::move(request.file), folders), exchange);
}

}  // namespace cytra::app
