#include "app/serve/image_request.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "app/serve/form_data.h"
#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "inference/windowed_model.h"
#include "io/formats.h"
#include "pipelines/job/inputs.h"
#include "tasks/annotation_targets.h"

namespace cytra::app {

const std::vector<ImageParameter> kImageParameters{
    {"save", "form of the result: mask, probability, logits, labels, ...", "mask"},
    {"threshold", "threshold of a mask's probability, 0 to 1", "0.5"},
    {"head", "of a model with several outputs, which one", "nuclei"},
    {"output", "image, overlay, table (CSV), geojson or imagej_roi", "image", false},
    {"format", "of an image: auto, ome_tiff, nifti, nrrd, metaimage, png or npy", "auto", false},
    {"filename", "name of the image; its ending tells the format of the result", "cells.tif"},
    {"scene", "of a file with several", "0"},
    {"timepoint", "of a time lapse", "0"},
    {"timeout", "seconds until the answer", "10"},
    {"request_id", "made by the client, for GET /progress/{request_id} meanwhile", "a1b2c3"}};

namespace {

namespace fs = std::filesystem;

constexpr const char* kResultName = "/.result";  // safe_name() gives no client this one

// Formats that one file holds alone and that are safe to take from strangers.
const std::vector<std::string> kTakenFormats{"ome_tiff",
                                             "png",
                                             "jpeg",
                                             "jpeg2000",
                                             "bmp",
                                             "gif",
                                             "nifti",
                                             "nrrd",
                                             "metaimage",
                                             "npy",
                                             "dicom"};

/// Media types, by the ending of a name; the first of a type is what files of it are called.
const std::vector<std::pair<const char*, const char*>> kMediaTypes{
    {".ome.tif", "image/tiff"},
    {".tif", "image/tiff"},
    {".tiff", "image/tiff"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jp2", "image/jp2"},
    {".bmp", "image/bmp"},
    {".gif", "image/gif"},
    {".nii.gz", "application/gzip"},
    {".nii", "application/x-nifti"},
    {".nrrd", "application/x-nrrd"},
    {".mha", "application/x-metaimage"},
    {".npy", "application/x-npy"},
    {".dcm", "application/dicom"},
    {".csv", "text/csv"},
    {".geojson", "application/geo+json"},
    {".zip", "application/zip"}};

const io::Format* format_by_content(const std::string& content, const std::string& path) {
  const std::string head = content.substr(0, io::kHeadBytes);
  for (const io::Format& format : io::formats())
    if (!format.are_folders && format.probe(head, path)) return &format;
  return nullptr;
}

class FileWork final : public ImageWork {
 public:
  FileWork(ImageFile file, Spool& spool) : file_(std::move(file)), place_(spool.take()) {}

  std::shared_ptr<const inference::ModelInput> read(const PreparedModel& model) override {
    take_file();
    const inference::WindowedModel& windowed = model.predictor.windowed();
    const std::string key = pipelines::source_key(model.predictor);
    data::Sample sample;
    sample.id = name_;
    data::Source& source = sample.sources[key];
    source.path = path_;
    source.selection.scene = file_.scene;
    source.selection.timepoint = file_.timepoint;
    source.time_is_channel = pipelines::wants_of(model.predictor, config::Node()).time_is_channel;
    if (const auto scenes = pipelines::scenes_of(sample, model.predictor).size(); scenes > 1)
      throw HttpError(422, fmt::format("{} scenes, expected the parameter scene", scenes));
    const pipelines::Frames frames = pipelines::frames_of(sample, model.predictor);
    if (frames.size() > 1) {
      throw HttpError(
          422, fmt::format("{} time points, expected the parameter timepoint", frames.size()));
    }
    return std::make_shared<const inference::ModelInput>(
        windowed.transforms.apply(frames[0], windowed.x_key, {}, inference::by_rows_from()));
  }

  inference::ImageResult::Outputs outputs(const PreparedModel& model) override {
    inference::OutputPlace place;
    place.stem = place_->folder() + kResultName;
    place.source = path_;
    place.format = file_.format;
    const config::Node& task = model.predictor.model().config.at("task");
    if (tasks::has_class_names(task))
      place.class_name = [&task](int64_t number) { return tasks::class_name_of(task, number); };
    inference::ImageResult::Outputs outputs;
    outputs.push_back(inference::make_result_output(file_.output, place));
    return outputs;
  }

  HttpResponse respond(const inference::ImageResult& result) override {
    if (result.files().empty())
      throw HttpError(422, fmt::format("output={}: the result has none", file_.output));
    const std::string& path = result.files().front().second;
    const std::string ending = path.substr((place_->folder() + kResultName).size());
    HttpResponse response{200, read_file(path, SIZE_MAX), media_type_of(path)};
    response.headers.emplace_back(
        "Content-Disposition",
        fmt::format("attachment; filename=\"{}{}\"", io::stem_of(name_), ending));
    return response;
  }

  HttpError told(int status, std::string text) const override {
    if (!fs::exists(place_->folder())) return {500, "the server's folder for files was removed"};
    const std::string folder = place_->folder() + "/";
    for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
      text.erase(at, folder.size());
    return {status, text};
  }

 private:
  /// Puts the content where it can be read as a file.
  void take_file() {
    if (!file_.path.empty()) {
      path_ = file_.path;
      name_ = fs::path(path_).filename().string();
      return;
    }
    name_ = safe_name(file_.name);
    const io::Format* format = format_by_content(
        file_.content, place_->folder() + "/" + (name_.empty() ? "image" : name_));
    if (name_.empty()) {
      std::string ending = format == nullptr ? "" : format->endings.front();
      for (const auto& [own, type] : kMediaTypes)
        if (file_.type == type) ending = own;
      name_ = "image" + ending;
    }
    path_ = place_->folder() + "/" + name_;
    write_image(path_, std::exchange(file_.content, {}));
  }

  ImageFile file_;
  const std::unique_ptr<Spool::Place> place_;
  std::string name_, path_;
};

/// The format that the client accepts, by media types; "auto" for any.
std::string format_accepted(const std::string& accept) {
  if (accept.empty() || accept.find("*/*") != std::string::npos) return "auto";
  for (const auto& [type, format] : {std::pair{"image/png", "png"},
                                     std::pair{"image/tiff", "ome_tiff"},
                                     std::pair{"application/gzip", "nifti"},
                                     std::pair{"application/x-nifti", "nifti"},
                                     std::pair{"application/x-nrrd", "nrrd"},
                                     std::pair{"application/x-metaimage", "metaimage"},
                                     std::pair{"application/x-npy", "npy"}}) {
    if (accept.find(type) != std::string::npos) return format;
  }
  return "auto";
}

}  // namespace

std::string safe_name(const std::string& given) {
  const std::string name = given.substr(given.find_last_of("/\\") + 1);
  const bool is_fine = !name.empty() && name.size() <= 100 && name.front() != '.' &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return !is_control(c) && c != '"' && c != '%';
                       });
  return is_fine ? name : "";
}

const io::Format* write_image(const std::string& path, const std::string& content) {
  const std::string name = fs::path(path).filename().string();
  const io::Format* format = format_by_content(content, path);
  if (format != nullptr &&
      std::find(kTakenFormats.begin(), kTakenFormats.end(), format->name) == kTakenFormats.end())
    throw HttpError(415, fmt::format("{}: {} is not taken by the server", name, format->title));
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) throw IoError(fmt::format("{}: can't be written: {}", name, std::strerror(errno)));
  if (const auto others = io::other_files_of(path); !others.empty()) {
    throw HttpError(422,
                    fmt::format("{}: names the file {}, too; expected one that holds all",
                                name,
                                printable(fs::path(others.front()).filename().string())));
  }
  return format;
}

double number_of(const std::string& name, const std::string& text, double low, double high) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(number >= low && number <= high)) {
    throw HttpError(
        400,
        fmt::format(
            "{}={}: expected a number from {} to {}", name, printable(text, 40), low, high));
  }
  return number;
}

int64_t whole_number_of(const std::string& name, const std::string& text) {
  const double number = number_of(name, text, 0, 1e9);
  if (number != std::floor(number))
    throw HttpError(400, fmt::format("{}={}: expected a whole number", name, printable(text, 40)));
  return static_cast<int64_t>(number);
}

std::string media_type_of(const std::string& path) {
  for (const auto& [ending, type] : kMediaTypes)
    if (ends_with(path, ending)) return type;
  return "application/octet-stream";
}

std::unique_ptr<ImageWork> work_on_file(ImageFile file, Spool& spool) {
  const std::vector<std::string> outputs{"image", "overlay", "table", "geojson", "imagej_roi"};
  if (std::find(outputs.begin(), outputs.end(), file.output) == outputs.end())
    throw HttpError(
        400,
        "output=" + printable(file.output, 40) + ": unknown." + suggestion(file.output, outputs));
  std::vector<std::string> formats = io::output_choices();
  formats.erase(std::remove(formats.begin(), formats.end(), "ome_zarr"), formats.end());
  if (std::find(formats.begin(), formats.end(), file.format) == formats.end())
    throw HttpError(
        400,
        "format=" + printable(file.format, 40) + ": unknown." + suggestion(file.format, formats));
  return std::make_unique<FileWork>(std::move(file), spool);
}

ImageRequest image_request_of(HttpExchange& exchange, const std::vector<std::string>& known) {
  const HttpHead& head = exchange.head;
  for (const auto& [name, value] : head.query) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw HttpError(400, printable(name, 40) + ": unknown parameter." + suggestion(name, known));
  }
  if (exchange.body.empty()) throw HttpError(400, "the body is empty, expected an image's file");
  ImageFile file;
  file.type = in_small_letters(trim(split(head.header("content-type") + ";", ';').front()));
  file.name = head.parameter("filename", filename_in(head.header("content-disposition")));
  file.output = head.parameter("output", "image");
  file.format = head.parameter("format", format_accepted(head.header("accept")));
  if (head.query.count("scene") > 0) file.scene = whole_number_of("scene", head.parameter("scene"));
  if (head.query.count("timepoint") > 0)
    file.timepoint = whole_number_of("timepoint", head.parameter("timepoint"));
  ResultWish wish{head.parameter("head"), head.parameter("save"), std::nullopt};
  if (head.query.count("threshold") > 0)
    wish.threshold = number_of("threshold", head.parameter("threshold"), 0, 1);
  if (head.query.count("timeout") > 0)
    exchange.expire_in(number_of("timeout", head.parameter("timeout"), 0.001, 1e6));
  if (starts_with(file.type, "multipart/")) {  // of a browser, or curl -F image=@FILE
    std::vector<FormPart> parts =
        parse_form(head.header("content-type"), std::exchange(exchange.body, {}));
    FormPart& part = file_part(parts);
    for (const FormPart& other : parts)
      if (other.filename.empty())
        throw HttpError(400,
                        fmt::format("multipart: the field {}: expected a file alone; parameters "
                                    "belong in the address, as ?threshold=0.5",
                                    printable(other.name, 40)));
    if (head.query.count("filename") == 0) file.name = part.filename;
    file.type = part.type;
    file.content = std::move(part.content);
  } else {
    file.content = std::move(exchange.body);
  }
  return {std::move(file), std::move(wish)};
}

void predict_image(ServedModel& model,
                   const std::shared_ptr<HttpExchange>& exchange,
                   Spool& spool) {
  std::vector<std::string> known;
  for (const ImageParameter& parameter : kImageParameters) known.emplace_back(parameter.name);
  ImageRequest request = image_request_of(*exchange, known);
  model.submit(request.wish, work_on_file(std::move(request.file), spool), exchange);
}

}  // namespace cytra::app
