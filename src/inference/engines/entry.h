#pragma once
// The entry by which an engine registers itself; each engine is one file, which no other file
// lists.
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <c10/core/ScalarType.h>

#include "device/precision.h"
#include "inference/engines/engine.h"

namespace cytra::inference {

/// Why an engine does not run a model here.
struct EngineUnfit : std::runtime_error {
  EngineUnfit(const std::string& why, bool is_usual) : runtime_error(why), is_usual(is_usual) {}
  bool is_usual;  // expected by users: backend=auto is silent about it
};

/// An engine as it is registered: for windows of one size.
class FixedEngine : public Engine {
 public:
  /// Whether it takes windows of other sizes, too.
  virtual bool takes_any_size() const { return false; }
  /// The number of windows that each run() must have; 0: any number.
  virtual int64_t count() const { return 0; }
  /// Called when the comparison with eager has succeeded: now the engine may keep files for the
  /// next process.
  virtual void accept() {}
  /// Whether its results were compared before, by the process that kept it.
  virtual bool was_accepted() const { return false; }
};

struct EngineEntry {
  /// The rank of the engine with backend=auto, the highest first; 0: not used automatically.
  int (*rank)(const EngineModel& model, const EngineOptions& options);
  /// Makes an engine for windows of exactly the example's size. Throws: EngineUnfit; whatever a
  /// library throws.
  std::unique_ptr<FixedEngine> (*make)(const EngineModel& model,
                                       const EngineOptions& options,
                                       const Tensor& example);
  /// Makes the engine where it is the fastest for these windows, whatever its rank, or nothing;
  /// null: its rank says.
  std::unique_ptr<FixedEngine> (*make_best)(const EngineModel& model,
                                            const EngineOptions& options,
                                            const Tensor& example) = nullptr;
  /// Throws: ConfigError for values of its own options that it does not know; null: it has none.
  void (*check)(const EngineOptions& options) = nullptr;
};
std::map<std::string, EngineEntry>& engine_entries();

/// Registers an engine: `const bool added = add_engine("eager", {rank, make});`
bool add_engine(const std::string& name, const EngineEntry& entry);

/// The precision of the options, in which torch's autocast runs the model's forward; outputs are
/// float32.
device::Precision precision_of(const EngineOptions& options);
std::vector<Tensor> forward_with(const EngineModel& model,
                                 const device::Precision& precision,
                                 const Tensor& windows);
/// The number of windows (S,C,[D,]H,W) that a CPU runs at once, at most S: fewer need less memory
/// and are as fast, or faster, until the smallest layers have too little work.
int64_t windows_at_once(const Tensor& windows);
/// The name of a type: "float32". It is inline, as a module that is loaded needs it, too.
inline std::string name_of(c10::ScalarType type) {
  return type == c10::kFloat      ? "float32"
         : type == c10::kBFloat16 ? "bfloat16"
         : type == c10::kHalf     ? "float16"
                                  : c10::toString(type);
}

}  // namespace cytra::inference
