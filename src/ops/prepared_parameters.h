#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// What a network that is only run has prepared of its parameters. The parameters themselves are
/// the key and are held, so no other tensor can take the place of one. What was prepared is made
/// anew where a parameter has other values, memory or strides by now: optimizers, averages of
/// weights and loading change it in place, set_data() gives it other memory. What writes by a bare
/// address must call bump_version().
template <class Prepared>
class PreparedParameters {
 public:
  /// What `make` gives for these parameters, of which some may be undefined, in this form.
  /// Thread: any.
  template <class Make>
  Prepared get(const std::vector<at::Tensor>& parameters, int64_t form, const Make& make) {
    for (const at::Tensor& parameter : parameters)
      if (parameter.defined() && parameter.is_inference()) return make();  // it counts no changes
    Key key{{}, form};
    for (const at::Tensor& parameter : parameters) key.first.push_back(parameter.getIntrusivePtr());
    const std::lock_guard lock(mutex_);
    Stored& stored = stored_[key];
    if (!stored.is_of(parameters)) {
      stored = {make(), {}};
      for (const at::Tensor& parameter : parameters) stored.states.emplace_back(parameter);
    }
    return stored.prepared;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return stored_.size();
  }

 private:
  /// A tensor as it was: its memory, which is held, sizes, strides, offset and version.
  struct State {
    explicit State(const at::Tensor& tensor)
        : alias(tensor.defined() ? tensor.detach() : tensor),
          version(tensor.defined() ? tensor._version() : 0) {}
    bool is_of(const at::Tensor& tensor) const {
      if (!alias.defined() || !tensor.defined()) return alias.defined() == tensor.defined();
      return alias.is_alias_of(tensor) && alias.sizes() == tensor.sizes() &&
             alias.strides() == tensor.strides() &&
             alias.storage_offset() == tensor.storage_offset() && version == tensor._version();
    }
    at::Tensor alias;
    int64_t version;
  };
  struct Stored {
    Prepared prepared;
    std::vector<State> states;
    bool is_of(const std::vector<at::Tensor>& parameters) const {
      if (states.size() != parameters.size()) return false;
      for (std::size_t i = 0; i < states.size(); ++i)
        if (!states[i].is_of(parameters[i])) return false;
      return true;
    }
  };
  using Held = c10::intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;
  using Key = std::pair<std::vector<Held>, int64_t>;  // parameters, form
  /// C++20's comparison of vectors would take the pointers as booleans, to which they convert.
  struct Before {
    bool operator()(const Key& a, const Key& b) const {
      if (a.second != b.second) return a.second < b.second;
      return std::lexicographical_compare(a.first.begin(),
                                          a.first.end(),
                                          b.first.begin(),
                                          b.first.end(),
                                          [](const Held& x, const Held& y) { return x < y; });
    }
  };
  mutable std::mutex mutex_;
  std::map<Key, Stored, Before> stored_;
};

}  // namespace cytra::ops
