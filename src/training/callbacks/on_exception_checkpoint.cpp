// OnExceptionCheckpoint: the state of the last step when an error ends the run. Source:
// lightning.pytorch.callbacks.OnExceptionCheckpoint. (ModelCheckpoint writes last.ckpt then.)
#include "base/files.h"
#include "config/registry.h"
#include "training/callback.h"

namespace cytra::training {
namespace {

class OnExceptionCheckpoint final : public Callback {
 public:
  struct Options {
    std::string dirpath, filename = "on_exception";
    void visit(auto& v) {
      v("dirpath", dirpath, "folder of the checkpoint", config::required);
      v("filename", filename, "without extension");
    }
  };
  explicit OnExceptionCheckpoint(const Options& options) : options_(options) {}

  void on_exception(Context& context, const std::string& /*what*/) override {
    make_folders(options_.dirpath);
    context.save_to.push_back(options_.dirpath + "/" + options_.filename + ".ckpt");
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Callback, OnExceptionCheckpoint, "OnExceptionCheckpoint");

}  // namespace
}  // namespace cytra::training
