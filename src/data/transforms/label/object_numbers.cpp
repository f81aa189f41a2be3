// ObjectNumbersd: label images whose objects have colours, or whose background is not 0.
#include "data/sample/per_key.h"
#include "data/survey/target_facts.h"

namespace cytra::data {
namespace {

struct ObjectNumbersd : KeyOptions {
  double background = 0;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("background",
      background,
      "the number that is no object; objects of colours have R * 65536 + G * 256 + B");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    const at::Tensor labels = as_numbers(image);
    if (background == 0) return labels;
    const at::Tensor numbers =
        at::isIntegralType(labels.scalar_type(), true) ? labels.to(at::kLong) : labels;
    const at::Tensor ours = numbers.eq(0);  // an object's, as 0 is not the background here
    return at::where(ours, numbers.max() + 1, numbers).masked_fill(numbers.eq(background), 0);
  }
};
CYTRA_REGISTER(Transform, PerKey<ObjectNumbersd>, "ObjectNumbersd");

}  // namespace
}  // namespace cytra::data
