#pragma once
// All that `serve` takes.
#include <optional>
#include <string>

#include "app/predict/config.h"
#include "base/strings.h"
#include "pipelines/batching/batching.h"
#include "pipelines/predict/options.h"

namespace cytra::app {

/// A checkpoint, which may be left out where `models` names some.
struct ServedCheckpoint : inference::CheckpointOptions {
  void visit(auto& v) {
    v("ckpt_path", ckpt_path, "the model of a server with a single one, as of predict");
    v("config", config, "for models that hold no configuration, as of predict");
    v("weights_only", config::Unused{{"true"}}, "nothing else is taken");
    v("strict", config::Unused{{"true"}}, "every weight must fit");
  }
};

struct ServeLimits {
  int64_t connections = 1024, header_kb = 16, body_mb = 256, requests = 64, requests_mb = 1024;
  double timeout_s = 300, idle_s = 60, drain_s = 60;
  void visit(auto& v) {
    v("connections", connections, "open at once; one that is idle makes room", 1, 1e6);
    v("header_kb", header_kb, "of a request's head", 1, 1024);
    v("body_mb", body_mb, "of a request's body: an image, as it is on a disk", 1, 1e6);
    v("requests", requests, "images that wait or are predicted; more are refused (503)", 1, 1e6);
    v("requests_mb", requests_mb, "of their bodies, all together", 1, 1e7);
    v("timeout_s", timeout_s, "until the answer; then it is 504", 0.001, 1e6);
    v("idle_s", idle_s, "until a connection without a request is closed", 0.1, 1e6);
    v("drain_s", drain_s, "after SIGTERM for what is being answered", 0, 1e6);
  }
  void check() const {
    if (body_mb > requests_mb)
      throw ConfigError("limits.body_mb: a body may not be larger than all of limits.requests_mb");
  }
};

/// Images that wait for each other, to be computed together.
struct ServeBatching {
  int64_t max_batch_size = 8;
  double max_latency = 0.1;
  void visit(auto& v) {
    v("max_batch_size",
      max_batch_size,
      "images of one size that are computed together; 1: each by itself",
      1,
      4096);
    v("max_latency", max_latency, "seconds that an image may wait for others", 0.0001, 60);
  }
};

struct ServeConfig : CommonConfig {
  ServedCheckpoint checkpoint;
  config::Node models, inference_args;
  std::string host = "127.0.0.1";
  int64_t port = 8000;
  std::optional<std::string> token = "auto", datastore, trainings;
  double repository_poll_secs = 1;
  bool until_stdin = false;
  ServeLimits limits;
  ServeBatching batching;
  pipelines::MadeOptions predict;
  inference::TtaOptions tta;
  OneProcessOptions trainer;
  inference::ModelPerformanceOptions performance;
  inference::ModelPreparationOptions model;
  void visit(auto& v) {
    v("checkpoint", checkpoint, "the model, where there is one");
    v("models", models, "several models by their names: {cells: a.ckpt, nuclei: b.ckpt}");
    v("host",
      host,
      "address to listen at: 127.0.0.1, ::1, that of a network card, 0.0.0.0; or unix:PATH");
    v("port", port, "0: any free one", 0, 65535);
    v("token",
      token,
      "what clients send as `Authorization: Bearer TOKEN`; auto: made and printed at the start; "
      "null: none, on this machine alone");
    v("datastore",
      datastore,
      "folder of images that annotators work on, for clients of MONAI Label; their labels go into "
      "labels/final in it, and it is what they train from");
    v("trainings",
      trainings,
      "folder whose trainings /trainings shows, and where those of annotators go; null: "
      "`trainings` in the datastore");
    v("repository_poll_secs",
      repository_poll_secs,
      "between two looks at the models' files, which are loaded anew when they change; 0: never",
      0,
      1e6);
    v("until_stdin",
      until_stdin,
      "end, as at SIGTERM, when stdin is closed: for a program that starts the server for itself");
    v("limits", limits, "what the server takes at once");
    v("batching", batching, "images that are computed together");
    v("predict", predict, "what results are, where a request does not say otherwise");
    v("inference_args",
      inference_args,
      "sliding window; null: as the checkpoint says",
      config::changes<inference::WindowChanges>());
    v("tta", tta, "test-time augmentation: the mean over turned images");
    v("trainer", trainer, "where to compute");
    v("performance", performance, "switches that hold for the whole process");
    v("model", model, "how the models are prepared");
    CommonConfig::visit_names(v);
    v("seed", config::Unused{}, "nothing is random here");
    v("test", config::Unused{{"false"}}, "of predict");
  }
  void check() const {
    if (checkpoint.ckpt_path.empty() && models.map.empty())
      throw ConfigError(
          "checkpoint.ckpt_path: expected a checkpoint, or several by name in models");
    if (!checkpoint.ckpt_path.empty() && !models.map.empty())
      throw ConfigError("models: checkpoint.ckpt_path names a model, too; expected one of both");
    for (const auto& [name, path] : models.map) {
      bool is_fine = !name.empty();
      for (const char c : name)
        is_fine = is_fine && (is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.');
      if (!is_fine)
        throw ConfigError("models." + name + ": expected a name of letters, digits, _, - and .");
    }
    if (token && token->empty()) throw ConfigError("token: is empty, expected one, auto or null");
  }
};

}  // namespace cytra::app
