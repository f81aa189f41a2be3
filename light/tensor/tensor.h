#pragma once
// at::Tensor on a CPU: a view of shared memory, and the operations on it that the sources of
// `predict` call, by torch's names and with its results.
#include <tuple>

#include "types.h"

namespace at {

class Tensor;
using TensorList = c10::ArrayRef<Tensor>;

/// Memory that tensors share.
struct Block {
  Block(void* data, std::function<void(void*)> free, std::size_t bytes)
      : data(data), free(std::move(free)), bytes(bytes) {}
  ~Block() { free(data); }
  Block& operator=(Block&&) = delete;
  void* data;
  std::function<void(void*)> free;
  std::size_t bytes;
};
struct View {
  std::shared_ptr<Block> block;
  ScalarType type;
  int64_t offset;  // elements
  std::vector<int64_t> sizes, strides;
};
struct TypeMeta {
  ScalarType type;
  operator ScalarType() const { return type; }
  ScalarType toScalarType() const { return type; }
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(View view) : view_(std::make_shared<const View>(std::move(view))) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor& other) & = default;
  Tensor& operator=(Tensor&& other) & = default;
  Tensor& operator=(const Tensor& other) && {
    copy_(other);
    return *this;
  }
  Tensor& operator=(const Scalar& value) && {
    fill_(value);
    return *this;
  }

  bool defined() const { return view_ != nullptr; }
  void reset() { view_.reset(); }
  const View& view_of() const {
    if (!view_) throw Error("an undefined tensor");
    return *view_;
  }
  long use_count() const { return view_.use_count(); }
  bool is_same(const Tensor& other) const { return view_ == other.view_; }
  int64_t dim() const { return static_cast<int64_t>(view_of().sizes.size()); }
  IntArrayRef sizes() const { return view_of().sizes; }
  IntArrayRef strides() const { return view_of().strides; }
  int64_t size(int64_t d) const { return view_of().sizes[place(d)]; }
  int64_t stride(int64_t d) const { return view_of().strides[place(d)]; }
  int64_t numel() const { return multiply_integers(view_of().sizes); }
  int64_t element_size() const { return elementSize(view_of().type); }
  std::size_t nbytes() const { return static_cast<std::size_t>(numel() * element_size()); }
  ScalarType scalar_type() const { return view_of().type; }
  TypeMeta dtype() const { return {view_of().type}; }
  TensorOptions options() const { return view_of().type; }
  Device device() const { return kCPU; }
  int get_device() const { return -1; }
  bool is_cpu() const { return true; }
  bool is_cuda() const { return false; }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  struct Storage {
    long use_count() const { return count; }
    std::size_t nbytes() const { return bytes; }
    long count;
    std::size_t bytes;
  };
  Storage storage() const { return {view_of().block.use_count(), view_of().block->bytes}; }
  template <class Stream>
  void record_stream(const Stream&) const {}
  bool requires_grad() const { return false; }
  const Tensor& requires_grad_(bool) const { return *this; }

  void* mutable_data_ptr() const;
  const void* const_data_ptr() const { return mutable_data_ptr(); }
  void* data_ptr() const { return mutable_data_ptr(); }
  template <class T>
  T* mutable_data_ptr() const {
    return static_cast<T*>(typed(sizeof(T)));
  }
  template <class T>
  const T* const_data_ptr() const {
    return static_cast<const T*>(typed(sizeof(T)));
  }
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(typed(sizeof(T)));
  }
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }

#include "methods.inc"

 private:
  std::size_t place(int64_t d) const;
  void* typed(std::size_t bytes) const;
  std::shared_ptr<const View> view_;
};

#include "functions.inc"

}  // namespace at
