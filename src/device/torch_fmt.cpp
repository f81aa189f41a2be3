// What is not inline in the fmt that torch's headers bring (fmt's src/format.cc): compiled here
// once, where FMT_HEADER_ONLY would compile it into each source.
#include <fmt/format-inl.h>

template fmt::detail::dragonbox::decimal_fp<float> fmt::detail::dragonbox::to_decimal(
    float) noexcept;
template fmt::detail::dragonbox::decimal_fp<double> fmt::detail::dragonbox::to_decimal(
    double) noexcept;
template fmt::detail::thousands_sep_result<char> fmt::detail::thousands_sep_impl(fmt::locale_ref);
template char fmt::detail::decimal_point_impl(fmt::locale_ref);
template void fmt::detail::buffer<char>::append(const char*, const char*);
