// Part of app/serve/router.h: what the server tells of itself: figures, and its routes.
#include "app/serve/image_request.h"
#include "app/serve/router.h"
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

using config::Node;

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
  gauge("cytra_serve_requests_open", "Images that wait or are predicted.", state_.room.requests());
  gauge("cytra_serve_requests_bytes", "Bytes of their bodies.", state_.room.bytes());
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
  const auto text = [](const std::string& value) { return Node::make_string(value); };
  Node paths = Node::make_map();
  for (const Route& route : routes_) {
    Node operation = Node::make_map();
    operation.set("summary", text(route.summary));
    Node parameters = Node::make_list();
    const auto add =
        [&](const std::string& name, const char* place, const std::string& help, bool is_required) {
          Node parameter = Node::make_map(), schema = Node::make_map();
          parameter.set("name", text(name));
          parameter.set("in", text(place));
          if (!help.empty()) parameter.set("description", text(help));
          parameter.set("required", Node::make_boolean(is_required));
          schema.set("type", text("string"));
          if (name == "model") {
            Node names = Node::make_list();
            for (const auto& [own, model] : state_.models->loaded())
              names.list.push_back(text(own));
            schema.set("enum", names);
          }
          parameter.set("schema", schema);
          parameters.list.push_back(parameter);
        };
    for (const std::string& part : split(route.path, '/'))
      if (starts_with(part, "{")) add(part.substr(1, part.size() - 2), "path", "", true);
    const bool is_preview = starts_with(route.path, "/preview");
    if (is_preview || starts_with(route.path, "/predict")) {
      for (const ImageParameter& own : kImageParameters)
        if (!is_preview || own.is_of_preview) add(own.name, "query", own.help, false);
      if (is_preview) add("plane", "query", "of a stack; the middle one by default", false);
      Node schema = Node::make_map(), type = Node::make_map(), content = Node::make_map(),
           body = Node::make_map();
      schema.set("type", text("string"));
      schema.set("format", text("binary"));
      type.set("schema", schema);
      content.set("application/octet-stream", type);
      body.set("required", Node::make_boolean(true));
      body.set("content", content);
      operation.set("requestBody", body);
    } else if (std::string(route.path).find("/infer") != std::string::npos) {
      add(kImageParameters.back().name, "query", kImageParameters.back().help, false);
    }
    if (!parameters.list.empty()) operation.set("parameters", parameters);
    Node responses = Node::make_map(), fine = Node::make_map(), failed = Node::make_map();
    fine.set("description", text("the answer"));
    failed.set("description", text("{\"error\": \"...\"}"));
    responses.set("200", fine);
    responses.set("default", failed);
    operation.set("responses", responses);
    if (route.is_open) operation.set("security", Node::make_list());
    std::string method = in_small_letters(route.method);
    Node* path = paths.find_direct(route.path);
    (path == nullptr ? paths.set(route.path, Node::make_map()) : *path).set(method, operation);
  }
  Node root = Node::make_map(), info = Node::make_map();
  root.set("openapi", text("3.0.3"));
  info.set("title", text("Cytra"));
  info.set("version", text(version()));
  root.set("info", info);
  root.set("paths", paths);
  if (!state_.token.empty()) {
    Node scheme = Node::make_map(), schemes = Node::make_map(), components = Node::make_map(),
         use = Node::make_map(), uses = Node::make_list();
    scheme.set("type", text("http"));
    scheme.set("scheme", text("bearer"));
    schemes.set("token", scheme);
    components.set("securitySchemes", schemes);
    root.set("components", components);
    use.set("token", Node::make_list());
    uses.list.push_back(use);
    root.set("security", uses);
  }
  return http_json(root);
}

}  // namespace cytra::app
