// Sums, extremes and orders along dimensions. Sums of real numbers are kept in float64.
#include <cmath>
#include <numeric>

#include "walk.h"

namespace at {
namespace {

using Sizes = std::vector<int64_t>;

/// A tensor as lines of what is reduced: (lines, length), dense; and the shape of the result.
struct Lines {
  Tensor values;
  Sizes shape;
};
Lines lines_of(const Tensor& x, IntArrayRef dims, bool keep) {
  std::vector<bool> goes(static_cast<std::size_t>(x.dim()), dims.empty());
  for (const int64_t d : dims) goes.at(static_cast<std::size_t>(d < 0 ? d + x.dim() : d)) = true;
  Sizes order, last, shape;
  int64_t length = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool is_reduced = goes[static_cast<std::size_t>(d)];
    (is_reduced ? last : order).push_back(d);
    if (is_reduced) length *= x.size(d);
    if (!is_reduced)
      shape.push_back(x.size(d));
    else if (keep)
      shape.push_back(1);
  }
  order.insert(order.end(), last.begin(), last.end());
  return {x.permute(order).contiguous().view({multiply_integers(shape), length}), shape};
}

/// Makes a value of each line.
template <class Out, class F>
Tensor reduced(const Lines& lines, const F& of_line) {
  const Tensor made = empty(lines.shape, type_of<Out>());
  const int64_t count = lines.values.size(0), length = lines.values.size(1);
  Out* to = made.mutable_data_ptr<Out>();
  with_type(lines.values.scalar_type(), [&](auto type) {
    using T = decltype(type);
    const T* from = lines.values.const_data_ptr<T>();
    parallel_for(0,
                 count,
                 std::max<int64_t>(1, 32768 / std::max<int64_t>(1, length)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     to[i] = static_cast<Out>(of_line(from + i * length, length));
                 });
  });
  return made;
}

/// The sum of term(x) over a line, of which several threads take parts that do not depend on their
/// number.
template <class T, class Term>
auto sum_line(const T* from, int64_t length, const Term& term) {
  using Sum = decltype(term(*from));
  constexpr int64_t kPart = 65536;
  std::vector<Sum> parts(static_cast<std::size_t>((length + kPart - 1) / kPart));
  parallel_for(0, static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const T* x = from + part * kPart;
      const int64_t n = std::min(kPart, length - part * kPart);
      std::array<Sum, 8> sums{};
      int64_t i = 0;
      for (; i + 8 <= n; i += 8)
        for (std::size_t k = 0; k < 8; ++k) sums[k] += term(x[i + static_cast<int64_t>(k)]);
      for (; i < n; ++i) sums[0] += term(x[i]);
      parts[static_cast<std::size_t>(part)] = std::accumulate(sums.begin(), sums.end(), Sum());
    }
  });
  return std::accumulate(parts.begin(), parts.end(), Sum());
}

template <class T>
double sum_of(const T* from, int64_t length) {
  return sum_line(from, length, [](T v) { return static_cast<double>(v); });
}

Tensor computed(const Tensor& x) {
  return isReducedFloatingType(x.scalar_type()) ? x.to(kFloat) : x;
}

template <class T>
bool is_beyond(T x, T best, bool highest) {  // NaN beyond all
  if (best != best) return false;
  return x != x || (highest ? x > best : x < best);
}

Tensor extreme(const Tensor& x, IntArrayRef dims, bool keep, bool highest) {
  const Lines lines = lines_of(x, dims, keep);
  const Tensor made = empty(lines.shape, x.options());
  const int64_t count = lines.values.size(0), length = lines.values.size(1);
  if (length == 0) throw Error("the extreme of no values");
  with_type(x.scalar_type(), [&](auto type) {
    using T = decltype(type);
    const T* from = lines.values.const_data_ptr<T>();
    T* to = made.mutable_data_ptr<T>();
    parallel_for(0, count, std::max<int64_t>(1, 32768 / length), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T best = from[i * length];
        for (int64_t k = 1; k < length; ++k)
          if (is_beyond(from[i * length + k], best, highest)) best = from[i * length + k];
        to[i] = best;
      }
    });
  });
  return made;
}

}  // namespace

Tensor Tensor::sum(IntArrayRef dims, bool keep, std::optional<ScalarType> type) const {
  const Tensor x = computed(*this);
  const ScalarType as = type.value_or(is_floating_point() ? scalar_type() : kLong);
  const Lines lines = lines_of(x, dims, keep);
  if (!isFloatingType(x.scalar_type()) && !isFloatingType(as)) {
    return reduced<int64_t>(lines,
                            [](const auto* from, int64_t n) {
                              return sum_line(
                                  from, n, [](auto v) { return static_cast<int64_t>(v); });
                            })
        .to(as);
  }
  return reduced<double>(lines, [](const auto* from, int64_t n) { return sum_of(from, n); }).to(as);
}

Tensor Tensor::mean(IntArrayRef dims, bool keep, std::optional<ScalarType> type) const {
  return reduced<double>(
             lines_of(computed(*this), dims, keep),
             [](const auto* from, int64_t n) { return sum_of(from, n) / static_cast<double>(n); })
      .to(type.value_or(scalar_type()));
}

Tensor Tensor::std(IntArrayRef dims, bool unbiased, bool keep) const {
  return reduced<double>(lines_of(computed(*this), dims, keep),
                         [&](const auto* from, int64_t n) {
                           const double count = static_cast<double>(n);
                           const double mean = sum_of(from, n) / count;
                           const double squares = sum_line(from, n, [&](auto v) {
                             return (static_cast<double>(v) - mean) *
                                    (static_cast<double>(v) - mean);
                           });
                           return std::sqrt(squares / (unbiased ? count - 1 : count));
                         })
      .to(scalar_type());
}

Tensor Tensor::prod(int64_t d, bool keep) const {
  return reduced<double>(lines_of(computed(*this), {d}, keep),
                         [](const auto* from, int64_t n) {
                           double product = 1;
                           for (int64_t i = 0; i < n; ++i) product *= static_cast<double>(from[i]);
                           return product;
                         })
      .to(is_floating_point() ? scalar_type() : kLong);
}

Tensor Tensor::norm(const Scalar& p, IntArrayRef dims, bool keep) const {
  if (p.to<double>() != 2) throw Error("a norm other than the Euclidean");
  return reduced<double>(lines_of(*this, dims, keep),
                         [](const auto* from, int64_t n) {
                           return std::sqrt(sum_line(from, n, [](auto v) {
                             return static_cast<double>(v) * static_cast<double>(v);
                           }));
                         })
      .to(scalar_type());
}

Tensor Tensor::amax(IntArrayRef dims, bool keep) const {
  return extreme(*this, dims, keep, true);
}
Tensor Tensor::amin(IntArrayRef dims, bool keep) const {
  return extreme(*this, dims, keep, false);
}
Tensor Tensor::argmax(std::optional<int64_t> d, bool keep) const {
  return reduced<int64_t>(lines_of(*this, d ? IntArrayRef(*d) : IntArrayRef(), keep),
                          [](const auto* x, int64_t n) {
                            if (n == 0) throw Error("the extreme of no values");
                            int64_t best = 0;
                            for (int64_t i = 1; i < n; ++i)
                              if (is_beyond(x[i], x[best], true)) best = i;
                            return best;
                          });
}

Tensor Tensor::all() const {
  return reduced<bool>(lines_of(ne(0), {}, false), [](const auto* x, int64_t n) {
    return std::all_of(x, x + n, [](auto v) { return v != 0; });
  });
}
Tensor Tensor::any(int64_t d, bool keep) const {
  return reduced<bool>(lines_of(ne(0), {d}, keep), [](const auto* x, int64_t n) {
    return std::any_of(x, x + n, [](auto v) { return v != 0; });
  });
}

Tensor Tensor::argsort(bool /*stable*/, int64_t d, bool descending) const {
  const Tensor lines = transpose(d, -1).contiguous(), made = empty(lines.sizes(), kLong);
  const int64_t length = size(d);
  with_type(scalar_type(), [&](auto type) {
    using T = decltype(type);
    const T* from = lines.const_data_ptr<T>();
    int64_t* to = made.mutable_data_ptr<int64_t>();
    parallel_for(0, numel() / std::max<int64_t>(1, length), 1, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        int64_t* order = to + line * length;
        const T* x = from + line * length;
        std::iota(order, order + length, 0);
        std::stable_sort(order, order + length, [&](int64_t a, int64_t b) {
          return descending ? is_beyond(x[a], x[b], true) : is_beyond(x[b], x[a], true);
        });
      }
    });
  });
  return made.transpose(d, -1);
}
std::tuple<Tensor, Tensor> Tensor::sort(int64_t d, bool descending) const {
  const Tensor order = argsort(true, d, descending);
  return {gather(d, order), order};
}

Tensor bincount(const Tensor& numbers, const std::optional<Tensor>& weights) {
  const Tensor index = numbers.to(kLong).contiguous();
  const int64_t* at = index.const_data_ptr<int64_t>();
  const int64_t n = index.numel(), bins = n == 0 ? 0 : *std::max_element(at, at + n) + 1;
  if (n > 0 && *std::min_element(at, at + n) < 0) throw Error("a count of numbers below 0");
  const bool is_weighted = weights && weights->defined();
  const Tensor made = zeros({bins}, is_weighted ? kDouble : kLong);
  if (!is_weighted) {
    for (int64_t i = 0; i < n; ++i) ++made.mutable_data_ptr<int64_t>()[at[i]];
    return made;
  }
  const Tensor each = weights->to(kDouble).contiguous();
  for (int64_t i = 0; i < n; ++i)
    made.mutable_data_ptr<double>()[at[i]] += each.const_data_ptr<double>()[i];
  return made;
}

Tensor Tensor::softmax(int64_t d, std::optional<ScalarType> type) const {
  const Tensor x = to(type.value_or(scalar_type()));
  const Tensor powers = x.sub(x.amax({d}, true)).exp();
  return powers.div(powers.sum({d}, true));
}

Tensor Tensor::cumsum(int64_t d) const {
  if (dim() != 1 || d != 0 || scalar_type() != kDouble)
    throw Error("cumsum of other than a line of float64");
  Tensor made = clone();
  double* to = made.mutable_data_ptr<double>();
  std::partial_sum(to, to + numel(), to);
  return made;
}

bool Tensor::equal(const Tensor& b) const {
  return sizes() == b.sizes() && eq(b).all().item<bool>();
}

}  // namespace at
