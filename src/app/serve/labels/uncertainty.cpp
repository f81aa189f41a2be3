#include "app/serve/labels/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <future>
#include <limits>
#include <utility>

#include "app/serve/http/json_body.h"
#include "app/serve/models/image_request.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/strings.h"
#include "inference/outputs/result.h"

namespace cytra::app {
namespace {

/// Takes the mean of a result in place of an answer.
struct ScoreWork final : FileWork {
  using FileWork::FileWork;
  inference::ImageResult::Outputs outputs(const PreparedModel&) override { return {}; }
  HttpResponse respond(const inference::ImageResult& result) override {
    return {200, std::to_string(result.mean_uncertainty())};
  }
};

/// A request of the server to itself.
class OwnExchange final : public HttpExchange {
 public:
  void answer(HttpResponse response) override {
    if (!is_answered_.exchange(true)) answer_.set_value(std::move(response));
  }
  void on_end(std::function<void()>) override {}  // somebody waits
  void expire_in(double) override {}
  std::future<HttpResponse> told() { return answer_.get_future(); }

 private:
  std::promise<HttpResponse> answer_;
  std::atomic<bool> is_answered_{false};
};

/// An image's rank: the logarithm of its score and noise of Gumbel's distribution, so that an image
/// is chosen with a probability in proportion to its score. The highest scores alone are those of
/// images that resemble each other, and of outliers. The noise depends on the number of open
/// images, so the choice is one until a label is added. Source: Kirsch et al., Stochastic Batch
/// Acquisition, TMLR 2023, "power acquisition" of beta 1.
double rank(const std::string& id, double score, uint64_t open) {
  if (score < 0) return -std::numeric_limits<double>::infinity();
  const double uniform = Rng(std::hash<std::string>()(id), open).uniform();
  return std::log(std::max(score, 1e-12)) - std::log(-std::log(std::max(uniform, 1e-12)));
}

const AskedResult kEntropy{"", "entropy", std::nullopt};

}  // namespace

Uncertainty::Uncertainty(const Datastore& store, const Repository& models, RequestFolders& folders)
    : store_(store), models_(models), folders_(folders), thread_([this] { run(); }) {}

Uncertainty::~Uncertainty() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Uncertainty::ask(const std::string& model, const std::shared_ptr<HttpExchange>& exchange) {
  const std::shared_ptr<ServedModel> own = models_.find(model);
  try {
    own->prepared(kEntropy);
  } catch (const HttpError& error) {
    throw HttpError(422, error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    scores_[own->name()].questions.push_back({exchange, Clock::now() + kPatience});
  }
  changed_.notify_all();
}

void Uncertainty::answer(Scores& scores) const {
  if (scores.questions.empty()) return;
  // As it is now: a label may have come since an image was begun.
  const std::map<std::string, std::string> open = store_.unlabelled();
  const std::pair<const std::string, Score>* best = nullptr;
  double highest = 0;
  std::size_t known = 0;
  for (const auto& score : scores.of) {
    const auto image = open.find(score.first);
    if (image == open.end() || stamp_of({image->second}) != score.second.stamp) continue;
    ++known;
    const double own = rank(score.first, score.second.value, open.size());
    if (best != nullptr && own <= highest) continue;
    best = &score;
    highest = own;
  }
  Json told = Json::object();
  if (best != nullptr)
    told = {{"id", best->first},
            {"name", std::filesystem::path(open.at(best->first)).filename().string()},
            {"score", best->second.value},
            {"scored", known},
            {"of", open.size()}};
  while (!scores.questions.empty()) {
    const bool is_due = scores.questions.front().until <= Clock::now() && best != nullptr;
    if (known < open.size() && !is_due) return;
    scores.questions.front().exchange->answer(http_json(told));
    scores.questions.pop_front();
  }
}

/// Scores one image. False: there was nothing to do.
bool Uncertainty::work(const std::string& name) {
  const std::shared_ptr<ServedModel> model = models_.find(name);
  const std::map<std::string, std::string> open = store_.unlabelled();
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    Scores& scores = scores_[name];
    if (scores.model.lock() != model) scores.of.clear();
    scores.model = model;
    for (const auto& [own, path] : open)
      if (const auto known = scores.of.find(own);
          id.empty() && (known == scores.of.end() || known->second.stamp != stamp_of({path})))
        id = own;
    answer(scores);
  }
  if (id.empty()) return false;
  Score score{stamp_of({open.at(id)})};
  try {
    ImageFile file;
    file.path = open.at(id);
    const auto exchange = std::make_shared<OwnExchange>();
    model->submit(kEntropy, std::make_unique<ScoreWork>(std::move(file), folders_), exchange);
    std::future<HttpResponse> told = exchange->told();
    while (told.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
      if (is_stopping_) return false;
    const HttpResponse answer = told.get();
    if (answer.status != 200) throw HttpError(answer.status, answer.body);
    score.value = std::stod(answer.body);
  } catch (const std::exception& error) {
    log::warn("{}: has no score for the strategy uncertainty: {}", id, error.what());
  }
  const std::lock_guard lock(mutex_);
  scores_[name].of[id] = score;
  answer(scores_[name]);
  return true;
}

/// Does work(); where the model or the images can't be known, that is the answer.
bool Uncertainty::attempt(const std::string& name) {
  try {
    return work(name);
  } catch (const HttpError& error) {
    const std::lock_guard lock(mutex_);
    for (const Question& question : std::exchange(scores_[name].questions, {}))
      question.exchange->answer(error_response(error.status, error.what()));
    return false;
  }
}

void Uncertainty::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const std::vector<std::string> names = keys_of(scores_);
    lock.unlock();
    bool is_busy = false;
    for (const std::string& name : names) is_busy |= attempt(name);
    lock.lock();
    // Else images may be added and models loaded anew: it looks again soon.
    if (!is_busy && !is_stopping_) changed_.wait_for(lock, std::chrono::milliseconds(500));
  }
}

}  // namespace cytra::app
