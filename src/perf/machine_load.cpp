#include "perf/machine_load.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

namespace cytra::perf {
namespace {

constexpr double kBusy = 0.1;  // of the processors

double as_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_seconds() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    sum += as_seconds(usage.ru_utime) + as_seconds(usage.ru_stime);
  }
  return sum;
}

}  // namespace

MachineLoad::MachineLoad(std::string root)
    : root_(std::move(root)), begin_(read()), own_s_(own_seconds()) {}

MachineLoad::Ticks MachineLoad::read() const {
  cpu_set_t allowed;
  const bool is_known = root_.empty() && ::sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  std::ifstream file(root_ + "/proc/stat");
  Ticks ticks;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ') continue;  // of all of them
    std::istringstream numbers(line.substr(3));
    std::size_t processor = 0;
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft_irq = 0, steal = 0;
    if (!(numbers >> processor >> user >> nice >> system >> idle)) continue;
    numbers >> wait >> irq >> soft_irq >> steal;  // older systems have fewer
    if (is_known && !CPU_ISSET(processor, &allowed)) continue;
    const double busy = user + nice + system + irq + soft_irq + steal;
    ticks.busy += busy;
    ticks.all += busy + idle + wait;
    ticks.processors += 1;
  }
  return ticks;
}

double MachineLoad::others() const {
  const Ticks now = read();
  const double all = now.all - begin_.all;  // a sandbox shows zeros
  if (!(all > 0)) return -1;
  const double own = (own_seconds() - own_s_) * static_cast<double>(::sysconf(_SC_CLK_TCK));
  return std::clamp((now.busy - begin_.busy - own) / all, 0.0, 1.0) * now.processors;
}

bool MachineLoad::is_busy() const {
  const double busy = others();
  return busy >= 0 && busy >= kBusy * read().processors;
}

std::string MachineLoad::text() const {
  const double busy = others();
  if (busy < 0) return "";
  return fmt::format(
      "other processes kept {:.1f} of {:.0f} processors busy meanwhile", busy, read().processors);
}

void MachineLoad::report(const std::string& what) const {
  const std::string line = text();
  if (line.empty()) return;
  if (is_busy()) {
    log::warn("{}: {}; times are longer, and less sure, than without other work", what, line);
  } else {
    log::info("{}: {}", what, line);
  }
}

void warn_if_busy(const std::string& what) {
  constexpr std::chrono::milliseconds kLook{250};
  const MachineLoad load;
  std::this_thread::sleep_for(kLook);
  if (load.is_busy()) load.report(what);
}

}  // namespace cytra::perf
