#include "app/serve/labels/monai_label.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "app/serve/http/form_data.h"
#include "app/serve/http/http_server.h"
#include "app/serve/http/json_body.h"
#include "app/serve/models/image_request.h"
#include "app/serve/state.h"
#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/version.h"
#include "inference/predictor/windowed_model.h"
#include "io/formats.h"
#include "tasks/annotation_targets.h"

namespace cytra::app {
namespace {

using SessionClock = std::chrono::steady_clock;

const Datastore& datastore_of(const ServeState& state) {
  if (!state.datastore)
    throw HttpError(404, "no datastore; expected the server's option datastore=FOLDER");
  return *state.datastore;
}

/// The names of a model's classes with their values in a mask.
Json label_values(const ServedModel& model) {
  const inference::WindowedModel& windowed = model.predictor().windowed();
  const config::Node& task = windowed.model.config.at("task");
  const bool has_names = tasks::has_class_names(task);
  const int64_t count = windowed.model.out_channels;
  Json labels = Json::object();
  // Values of a map of labels, or the numbers of masks from 1, whose classes count from 0.
  const bool are_masks = count > 1 && task.get<bool>("multilabel", false);
  const int64_t most = count == 1 || are_masks ? count : count - 1;
  for (int64_t k = 1; k <= most; ++k) {
    const std::string name = has_names    ? tasks::class_name_of(task, are_masks ? k - 1 : k)
                             : count == 1 ? windowed.y_key
                                          : fmt::format("class_{}", k);
    labels[name] = k;
  }
  return labels;
}

Json datastore_status(const ServeState& state) {
  if (!state.datastore)
    return {
        {"total", 0}, {"completed", 0}, {"label_tags", Json::object()}, {"train", Json::array()}};
  Json train = Json::array();
  for (const auto& [id, paths] : state.datastore->labelled())
    train.push_back({{"image", id}, {"label", id}});
  return {{"total", state.datastore->images().size()},
          {"completed", train.size()},
          {"label_tags", state.datastore->tags()},
          {"train", train}};
}

HttpResponse label_file(std::pair<std::string, std::string> file) {
  const std::string name = std::filesystem::path(file.first).filename().string();
  return attachment(std::move(file.second), name);
}

/// The result of an image with its description, in parts.
class LabelWork final : public FileWork {
 public:
  LabelWork(ImageFile file, RequestFolders& folders, std::string output, Json told)
      : FileWork(std::move(file), folders), output_(std::move(output)), told_(std::move(told)) {}
  HttpResponse respond(const inference::ImageResult& result) override {
    HttpResponse file = FileWork::respond(result);
    if (output_ == "image") return file;
    if (output_ == "json") return http_json(told_);
    const std::string name = parameter_in(file.headers.at(0).second, "filename");
    return form_response({{"params", "", told_.dump(), "application/json"},
                          {"image", name, std::move(file.body), file.type}});
  }

 private:
  const std::string output_;
  const Json told_;
};

/// The format of results for an ending that a client asks for.
std::string format_for(const std::string& ending) {
  const io::Format* format = ending.empty() ? nullptr : io::format_of_name("a" + ending);
  if (format == nullptr || format->create == nullptr || format->are_folders)
    throw HttpError(400,
                    "result_extension: {}: expected .nii.gz, .nrrd, .mha, .tif, .png or .npy",
                    printable(ending, 20));
  return format->name;
}

}  // namespace

LabelSessions::LabelSessions(int64_t most, int64_t bytes) : most_(most), bytes_(bytes) {}

void LabelSessions::forget_old() {
  const std::lock_guard lock(mutex_);
  for (auto one = sessions_.begin(); one != sessions_.end();)
    one = SessionClock::now() > one->second.end ? sessions_.erase(one) : ++one;
}

std::string LabelSessions::add(Session session) {
  const std::string id = new_secret();
  forget_old();
  const std::lock_guard lock(mutex_);
  int64_t held = session.bytes;
  for (const auto& [key, other] : sessions_) held += other.bytes;
  if (std::ssize(sessions_) >= most_ || held > bytes_)
    throw HttpError(503, "too many sessions are open; DELETE /session/ID ends one");
  sessions_.emplace(id, std::move(session));
  return id;
}

LabelSessions::Session LabelSessions::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || SessionClock::now() > found->second.end ||
      !std::filesystem::exists(found->second.path))
    throw HttpError(404, printable(id) + ": there is no such session");
  return found->second;
}

LabelSessions::Session LabelSessions::remove(const std::string& id) {
  Session session = find(id);
  const std::lock_guard lock(mutex_);
  sessions_.erase(id);
  return session;
}

HttpResponse label_info(const ServeState& state) {
  Json models = Json::object(), labels = Json::array();
  for (const auto& [name, model] : state.models->loaded()) {
    const Json own = label_values(*model);
    for (const auto& [label, value] : own.items())
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
    const inference::WindowedModel& windowed = model->predictor().windowed();
    models[name] = {{"type", "segmentation"},
                    {"labels", own},
                    {"dimension", windowed.image_dims()},
                    {"description", windowed.model.config.get<std::string>("task._target_", "")},
                    {"config", Json::object()}};
  }
  Json strategies = Json::object(), trainers = Json::object();
  if (state.datastore) {
    strategies["random"] = {{"description", "Any image without a final label"}};
    strategies["first"] = {{"description", "The first image without a final label, by name"}};
    strategies["uncertainty"] = {
        {"description", "The image without a final label that the model knows least about"}};
    for (const auto& [name, unused] : models.items())
      trainers[name] = {{"description", "train, from the model that is served"},
                        {"config", LabelTraining::keys()}};
  }
  return http_json({{"name", "Cytra"},
                    {"description", "Trained models of Cytra"},
                    {"version", version()},
                    {"labels", labels},
                    {"models", models},
                    {"trainers", trainers},
                    {"strategies", strategies},
                    {"scoring", Json::object()},
                    {"train_stats", Json::object()},
                    {"datastore", datastore_status(state)}});
}

void label_infer(ServeState& state,
                 ServedModel& model,
                 const std::shared_ptr<HttpExchange>& exchange) {
  const HttpHead& head = exchange->head;
  std::vector<FormPart> parts;  // none: the address says it all
  if (const std::string type = head.header("content-type");
      in_small_letters(type).starts_with("application/x-www-form-urlencoded")) {
    parts.push_back({"params", "", form_value(exchange->body, "params")});
  } else if (in_small_letters(type).starts_with("application/json")) {
    parts.push_back({"params", "", std::exchange(exchange->body, {})});
  } else if (!exchange->body.empty()) {
    parts = parse_form(type, std::exchange(exchange->body, {}));
  }
  if (find_part(parts, "label") != nullptr)
    throw HttpError(422, "label: the model takes images alone, expected no label or scribbles");
  const FormPart* given = find_part(parts, "params");
  const Json params = parse_object(given == nullptr ? "" : given->content);
  const std::string output = head.parameter("output", "all");
  if (output != "all" && output != "image" && output != "json")
    throw HttpError(400, "output=" + printable(output, 20) + ": expected all, image or json");
  ImageFile file;
  file.format =
      format_for(json_member_or<std::string>(params, "result_extension", "a text", ".nii.gz"));
  const std::string session = head.parameter("session_id"), image = head.parameter("image");
  if (!session.empty()) {
    const LabelSessions::Session own = state.sessions.find(session);
    file.path = own.path;
    file.kept = own.folder;
  } else if (FormPart* part = find_part(parts, "file"); part != nullptr) {
    file.content = std::move(part->content);
    file.name = part->filename;
  } else if (image.empty()) {
    throw HttpError(400, "expected ?image=NAME, ?session_id=ID or a form with a file");
  } else {
    file.path = datastore_of(state).image(image);
  }
  const Json told{{"model", model.name()}, {"label_names", label_values(model)}};
  model.submit(asked_result_in(params),
               std::make_unique<LabelWork>(std::move(file), state.folders, output, told),
               exchange);
}

HttpResponse label_datastore(ServeState& state, HttpExchange& exchange) {
  const Datastore& store = datastore_of(state);
  const HttpHead& head = exchange.head;
  const std::string tag =
      head.parameter("tag", "final").empty() ? "final" : head.parameter("tag", "final");
  if (head.path == "/datastore/" && head.method == "GET") {
    if (head.parameter("output") == "train") return http_json(datastore_status(state)["train"]);
    if (head.parameter("output") != "all") return http_json(datastore_status(state));
    std::map<std::string, Json> labels;  // of each image those of all tags
    for (const auto& [own, count] : store.tags())
      for (const auto& [id, path] : store.labels(own))
        labels[id][own] = {{"ext", path.substr(path.rfind('/') + 1 + id.size())}};
    std::map<std::string, Json> objects;
    for (const auto& [id, path] : store.images())
      objects[id] = {
          {"image", {{"info", {{"name", std::filesystem::path(path).filename().string()}}}}},
          {"labels", labels.count(id) > 0 ? labels.at(id) : Json::object()}};
    return http_json({{"name", "datastore"}, {"description", ""}, {"objects", objects}});
  }
  if (head.path == "/datastore/" && head.method == "DELETE") {
    const std::string id = head.parameter("id");
    if (head.parameter("type", "image") == "image") {
      store.remove_image(id);
    } else {
      store.remove_label(id, tag);
    }
    return http_json(Json::object());
  }
  if (head.method == "GET" && head.path == "/datastore/image")
    return label_file(store.read_image(head.parameter("image")));
  if (head.method == "GET") return label_file(store.read_label(head.parameter("label"), tag));
  std::vector<FormPart> parts =
      parse_form(head.header("content-type"), std::exchange(exchange.body, {}));
  const FormPart& part = file_part(parts);
  const std::string name = safe_name(part.filename);
  if (name.empty())
    throw HttpError(400, printable(part.filename) + ": expected the plain name of an image");
  if (write_image(state.folders.take()->path() + "/" + name, part.content) == nullptr)
    throw HttpError(415, name + ": is no image of a format that is taken");
  std::string id = head.parameter("image");
  if (head.path == "/datastore/label") {
    store.save_label(id, tag, name, part.content);
    return http_json({{"image", id}, {"label", id}});
  }
  if (id.empty()) id = io::stem_of(name);
  store.add_image(id, name, part.content);
  return http_json({{"image", id}});
}

HttpResponse label_session(ServeState& state, HttpExchange& exchange, const std::string& id) {
  const auto tell = [](const LabelSessions::Session& session) {
    const std::chrono::duration<double> left = session.end - SessionClock::now();
    return Json{
        {"name", session.name}, {"expiry", std::llround(left.count())}, {"meta", Json::object()}};
  };
  const std::string& method = exchange.head.method;
  if (method == "GET") {
    const LabelSessions::Session session = state.sessions.find(id);
    const bool wants_file =
        exchange.head.parameter("image") == "true" && !std::filesystem::is_directory(session.path);
    return wants_file ? label_file({session.path, read_file(session.path, SIZE_MAX)})
                      : http_json(tell(session));
  }
  if (method == "DELETE") return http_json(tell(state.sessions.remove(id)));
  const std::vector<FormPart> parts =
      parse_form(exchange.head.header("content-type"), std::exchange(exchange.body, {}));
  LabelSessions::Session session;
  session.folder = state.folders.take();
  int64_t files = 0;
  bool is_series = true;
  for (const FormPart& part : parts) {
    if (part.filename.empty()) continue;
    const std::string name = safe_name(part.filename), folder = session.folder->path() + "/";
    session.name = name.empty() ? fmt::format("image_{}", files) : name;
    if (std::filesystem::exists(folder + session.name))  // slices of a series, of two folders
      session.name = fmt::format("{}_{}", files, name);
    session.path = folder + session.name;
    const io::Format* format = write_image(session.path, part.content);
    is_series = is_series && format != nullptr && format->name == "dicom";
    session.bytes += std::ssize(part.content);
    ++files;
  }
  if (files == 0) throw HttpError(400, "multipart: expected a file");
  if (files > 1 && !is_series)
    throw HttpError(415, "several files: expected slices of DICOM, or a file alone");
  if (files > 1) session.path = session.folder->path();
  const Json told = tell(session);
  return http_json(
      {{"session_id", state.sessions.add(std::move(session))}, {"session_info", told}});
}

void label_next(ServeState& state,
                const std::string& strategy,
                const std::shared_ptr<HttpExchange>& exchange) {
  const std::vector<std::string> known{"first", "random", "uncertainty"};
  if (!contains(known, strategy))
    throw HttpError(404, printable(strategy) + ": no such strategy." + suggestion(strategy, known));
  const Datastore& store = datastore_of(state);
  if (strategy == "uncertainty") {
    const Json params = parse_object(exchange->body);
    // Clients that know of one model alone name none: the first is meant.
    const std::string first = state.models->index().front().name;
    return state.uncertainty->ask(json_member_or<std::string>(params, "model", "a text", first),
                                  exchange);
  }
  const auto open = store.unlabelled();
  if (open.empty()) return exchange->answer(http_json(Json::object()));
  const auto& [id, path] = *std::next(
      open.begin(),
      strategy == "first" ? 0 : static_cast<std::ptrdiff_t>(std::random_device()() % open.size()));
  exchange->answer(
      http_json({{"id", id}, {"name", std::filesystem::path(path).filename().string()}}));
}

HttpResponse label_train(ServeState& state,
                         const HttpExchange& exchange,
                         const std::string& model) {
  datastore_of(state);
  LabelTraining& training = *state.training;
  if (exchange.head.method == "GET")
    return http_json(training.status(exchange.head.parameter("check_if_running") == "true"));
  if (exchange.head.method == "DELETE") return http_json(training.stop());
  return http_json(training.start(model, parse_object(exchange.body)));
}

}  // namespace cytra::app
