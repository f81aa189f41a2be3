// Part of app/serve/routes/router.h: what the server tells of itself: figures, and its routes.
#include "app/serve/routes/router.h"
#include "base/prometheus_text.h"
#include "base/strings.h"
#include "base/version.h"

namespace cytra::app {
namespace {

void add_seconds(const std::string& name,
                 const std::string& help,
                 const std::vector<std::pair<std::string, pipelines::BatchHistogram>>& by_model,
                 PrometheusText& text) {
  text.metric(name, help, "summary");
  for (const auto& [model, seconds] : by_model) {
    const PrometheusText::Labels labels =
        model.empty() ? PrometheusText::Labels{} : PrometheusText::Labels{{"model", model}};
    for (const char* share : {"0.5", "0.9", "0.99"}) {
      PrometheusText::Labels own = labels;
      own.emplace_back("quantile", share);
      text.sample(seconds.quantile(std::stod(share)), own);
    }
    text.sample(seconds.sum(), labels, "_sum");
    text.sample(static_cast<double>(seconds.count()), labels, "_count");
  }
}

}  // namespace

HttpResponse Router::metrics() const {
  PrometheusText text;
  text.metric("cytra_serve_answers_total", "Answers by route and status.", "counter");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : answers_)
      text.sample(static_cast<double>(count),
                  {{"route", key.first}, {"status", std::to_string(key.second)}});
    add_seconds("cytra_serve_request_seconds",
                "From a request's head to its answer, of images that were predicted.",
                {{"", seconds_}},
                text);
  }
  const auto gauge = [&](const char* name, const char* help, int64_t value) {
    text.metric(name, help, "gauge").sample(static_cast<double>(value));
  };
  gauge(
      "cytra_serve_requests_open", "Images that wait or are predicted.", state_.budget.requests());
  gauge("cytra_serve_requests_bytes", "Bytes of their bodies.", state_.budget.bytes());
  gauge("cytra_serve_connections", "Open connections.", state_.connections());
  std::map<std::string, pipelines::BatchingFigures> figures;
  for (const auto& [name, model] : state_.models->loaded()) figures.emplace(name, model->figures());
  text.metric(
      "cytra_serve_images_total", "Images that reached the model, by their end.", "counter");
  for (const auto& [name, own] : figures)
    for (const auto& [outcome, count] : own.outcomes)
      text.sample(static_cast<double>(count),
                  {{"model", name}, {"outcome", pipelines::name_of(outcome)}});
  text.metric("cytra_serve_batches_total", "Batches by their number of images.", "counter");
  for (const auto& [name, own] : figures)
    for (const auto& [images, count] : own.batches)
      text.sample(static_cast<double>(count),
                  {{"model", name}, {"images", std::to_string(images)}});
  std::vector<std::pair<std::string, pipelines::BatchHistogram>> queue, compute;
  for (const auto& [name, own] : figures) {
    queue.emplace_back(name, own.queue_s);
    compute.emplace_back(name, own.compute_s);
  }
  add_seconds(
      "cytra_serve_queue_seconds", "From an image that is read to its computing.", queue, text);
  add_seconds("cytra_serve_compute_seconds", "Of the model on a batch.", compute, text);
  return {200, text.text(), "text/plain; version=0.0.4"};
}

HttpResponse Router::openapi() const {
  Json paths = Json::object(), models = Json::array();
  for (const auto& [name, model] : state_.models->loaded()) models.push_back(name);
  const Json text{{"type", "string"}};
  for (const Route& route : routes_) {
    Json operation{{"summary", route.summary}}, parameters = Json::array();
    const auto add = [&](const std::string& name,
                         const char* place,
                         const std::string& help,
                         bool is_required) {
      Json parameter{{"name", name}, {"in", place}, {"required", is_required}, {"schema", text}};
      if (!help.empty()) parameter["description"] = help;
      if (name == "model") parameter["schema"]["enum"] = models;
      parameters.push_back(std::move(parameter));
    };
    for (const std::string& part : split(route.path, '/'))
      if (part.starts_with("{")) add(part.substr(1, part.size() - 2), "path", "", true);
    for (const Parameter& own : route.parameters) add(own.name, "query", own.help, false);
    if (route.takes_file) {
      const Json file{{"schema", {{"type", "string"}, {"format", "binary"}}}};
      operation["requestBody"] = {{"required", true},
                                  {"content", {{"application/octet-stream", file}}}};
    }
    if (!parameters.empty()) operation["parameters"] = parameters;
    operation["responses"] = {{"200", {{"description", "the answer"}}},
                              {"default", {{"description", "{\"error\": \"...\"}"}}}};
    if (route.is_open) operation["security"] = Json::array();
    paths[route.path][in_small_letters(route.method)] = std::move(operation);
  }
  Json root{{"openapi", "3.0.3"},
            {"info", {{"title", "Cytra"}, {"version", version()}}},
            {"paths", std::move(paths)}};
  if (!state_.token.empty()) {
    const Json scheme{{"type", "http"}, {"scheme", "bearer"}};
    root["components"] = {{"securitySchemes", {{"token", scheme}}}};
    root["security"] = Json::array({{{"token", Json::array()}}});
  }
  return http_json(root);
}

}  // namespace cytra::app
