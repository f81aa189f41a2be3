#pragma once
// What an engine registers: one file each, which nothing else lists.
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <c10/core/ScalarType.h>

#include "device/precision.h"
#include "inference/engine.h"

namespace cytra::inference {

/// Why an engine does not run a model here.
struct EngineUnfit : std::runtime_error {
  EngineUnfit(const std::string& why, bool is_usual) : runtime_error(why), is_usual(is_usual) {}
  bool is_usual;  // nothing that a user would wonder about: backend=auto is silent
};

/// An engine as it is registered: for windows of one size.
class FixedEngine : public Engine {
 public:
  /// How many windows each run() must have; 0: any number.
  virtual int64_t count() const { return 0; }
  /// It was compared with eager, and holds: what it keeps for the next process, it may keep now.
  virtual void accept() {}
  /// What it gives was compared before, by the process that kept it.
  virtual bool was_accepted() const { return false; }
};

struct EngineEntry {
  /// Before others with backend=auto; 0: never by itself.
  int (*rank)(const EngineModel& model, const EngineOptions& options);
  /// For windows of exactly the example's size. Throws: EngineUnfit; whatever a library throws.
  std::unique_ptr<FixedEngine> (*make)(const EngineModel& model,
                                       const EngineOptions& options,
                                       const Tensor& example);
};
std::map<std::string, EngineEntry>& engine_entries();

/// `const bool added = add_engine("eager", {rank, make});`
bool add_engine(const std::string& name, const EngineEntry& entry);

/// The model's forward by torch's autocast of the precision, its outputs float32.
device::Precision precision_of(const EngineOptions& options);
std::vector<Tensor> forward_with(const EngineModel& model,
                                 const device::Precision& precision,
                                 const Tensor& windows);
/// "float32". Here, as a module that is loaded needs it, too.
inline std::string name_of(c10::ScalarType type) {
  return type == c10::kFloat      ? "float32"
         : type == c10::kBFloat16 ? "bfloat16"
         : type == c10::kHalf     ? "float16"
                                  : c10::toString(type);
}

}  // namespace cytra::inference
