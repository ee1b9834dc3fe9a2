#include "learn/ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/job.h"
#include "base/job_watch.h"
#include "base/log.h"
#include "base/text.h"

#ifdef USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

namespace kibitz::learn {

using Clock = std::chrono::steady_clock;
using torch::Tensor;

namespace {

constexpr auto kJoinTime = std::chrono::seconds(60);
// A lost rank is found by the watch, so that a slow one may take its time.
constexpr auto kSumTime = std::chrono::hours(24);
constexpr int64_t kBucketElements = 1 << 20;  // 4 MB.

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

struct Ranks::Group {
  JobPlace place;
  std::unique_ptr<JobWatch> watch;
  double waited = 0;
#ifdef USE_C10D_GLOO
  c10::intrusive_ptr<c10d::TCPStore> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;

  void Join();
  c10::intrusive_ptr<c10d::Work> Start(std::vector<Tensor>& tensors);
  void Wait(const c10::intrusive_ptr<c10d::Work>& work);
#endif
};

#ifdef USE_C10D_GLOO

namespace {

c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> GlooOptions(const JobPlace& place) {
  auto options = c10d::ProcessGroupGloo::Options::create(kSumTime);
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != '\0') {
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(interface));
  } else if (place.address == "127.0.0.1" || place.address == "localhost") {
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  } else {
    options->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
  }
  return options;
}

// The first line: torch adds where in its code it failed.
std::string FirstLine(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

void Ranks::Group::Join() {
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<uint16_t>(place.port);
    options.isServer = place.rank == 0;
    options.numWorkers = static_cast<size_t>(place.ranks);
    options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(kJoinTime);
    store = c10::make_intrusive<c10d::TCPStore>(place.address, options);
    watch = std::make_unique<JobWatch>(
        place,
        [&](int port) {
          const std::string text = std::to_string(port);
          store->set("kibitz watch", std::vector<uint8_t>(text.begin(), text.end()));
        },
        [&] {
          const std::vector<uint8_t> text = store->get("kibitz watch");
          return static_cast<int>(ParseInt(std::string(text.begin(), text.end())).value_or(0));
        });
    gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.ranks,
                                                       GlooOptions(place));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(
        "rank {} of {} cannot join the others at {}, port {}: {}; set MASTER_ADDR to the machine "
        "of rank 0 and MASTER_PORT to a free port there",
        place.rank, place.ranks, place.address, place.port, FirstLine(error));
  }
}

c10::intrusive_ptr<c10d::Work> Ranks::Group::Start(std::vector<Tensor>& tensors) {
  return gloo->allreduce(tensors);
}

void Ranks::Group::Wait(const c10::intrusive_ptr<c10d::Work>& work) {
  const auto start = Clock::now();
  try {
    work->wait();
  } catch (const std::exception& error) {
    // The watch knows more, and ends this process.
    std::this_thread::sleep_for(std::chrono::seconds(9));
    throw Error("rank {} lost the connection to the others: {}", place.rank, FirstLine(error));
  }
  waited += SecondsSince(start);
}

Ranks::Ranks() : place_(PlaceInJob()) {
  if (place_.ranks == 1) return;
  group_ = std::make_unique<Group>();
  group_->place = place_;
  group_->Join();
  if (place_.rank > 0 && GetLogLevel() < LogLevel::kWarn) SetLogLevel(LogLevel::kWarn);
  LogInfo("{} ranks, started by {}", place_.ranks, place_.launcher);
}

void Ranks::Sum(std::span<double> numbers) {
  if (!group_) return;
  auto tensor =
      torch::from_blob(numbers.data(), {static_cast<int64_t>(numbers.size())}, torch::kFloat64);
  std::vector<Tensor> tensors = {tensor};
  group_->Wait(group_->Start(tensors));
}

std::function<void()> Ranks::StartSum(Tensor tensor) {
  if (!group_) return [] {};
  std::vector<Tensor> tensors = {std::move(tensor)};
  return [group = group_.get(), work = group_->Start(tensors)] { group->Wait(work); };
}

void Ranks::Done() {
  if (!group_ || !group_->watch) return;
  group_->watch->Done();
  group_.reset();
}

void Ranks::Fail(const std::string& message) {
  if (group_ && group_->watch) group_->watch->Fail(message);
}

#else

Ranks::Ranks() : place_(PlaceInJob()) {
  if (place_.ranks == 1) return;
  throw Error(
      "{} started {} ranks, but this libtorch has no Gloo; build with one that has it, or start a "
      "single process",
      place_.launcher, place_.ranks);
}
void Ranks::Sum(std::span<double>) {}
std::function<void()> Ranks::StartSum(Tensor) {
  return [] {};
}
void Ranks::Done() {}
void Ranks::Fail(const std::string&) {}

#endif

Ranks::~Ranks() = default;

Ranks& Ranks::Here() {
  static Ranks ranks;
  return ranks;
}

double Ranks::waited() const { return group_ ? group_->waited : 0; }

std::vector<std::string> Ranks::Gather(const std::string& text) {
  const auto count = static_cast<size_t>(size());
  std::vector<double> sizes(count);
  sizes[static_cast<size_t>(rank())] = static_cast<double>(text.size());
  Sum(sizes);
  const auto longest = static_cast<size_t>(*std::ranges::max_element(sizes));
  // Each rank's place is zero on all others.
  std::vector<double> bytes(count * longest);
  for (size_t i = 0; i < text.size(); ++i) {
    bytes[static_cast<size_t>(rank()) * longest + i] = static_cast<uint8_t>(text[i]);
  }
  Sum(bytes);
  std::vector<std::string> texts;
  for (size_t from = 0; from < count; ++from) {
    const double* begin = bytes.data() + from * longest;
    std::string& made = texts.emplace_back();
    for (size_t i = 0; i < static_cast<size_t>(sizes[from]); ++i) {
      made.push_back(static_cast<char>(static_cast<uint8_t>(begin[i])));
    }
  }
  return texts;
}

double ShareOfRows(int64_t rows) {
  Ranks& ranks = Ranks::Here();
  if (ranks.size() == 1) return 1;
  double all = static_cast<double>(rows);
  ranks.Sum({&all, 1});
  return all == 0 ? 0 : static_cast<double>(rows) / all;
}

// --- Gradients ---

GradientSum::GradientSum(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
  if (Ranks::Here().size() == 1) return;
  bucket_of_.resize(parameters_.size());
  filled_.resize(parameters_.size());
  // Backward comes to the last layers first.
  int64_t room = 0;
  for (size_t i = parameters_.size(); i-- > 0;) {
    const int64_t elements = parameters_[i].numel();
    if (buckets_.empty() || elements > room) {
      buckets_.emplace_back();
      room = kBucketElements;
    }
    bucket_of_[i] = buckets_.size() - 1;
    buckets_.back().parameters.push_back(i);
    room -= elements;
  }
  for (Bucket& bucket : buckets_) {
    int64_t size = 0;
    for (size_t i : bucket.parameters) {
      bucket.offsets.push_back(size);
      size += parameters_[i].numel();
    }
    const auto flags = static_cast<int64_t>(bucket.parameters.size());
    bucket.numbers = torch::empty({size + flags}, parameters_[bucket.parameters.front()].options());
    bucket.elements = size;
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(parameters_[i].register_hook([this, i](const Tensor& gradient) {
      if (summing_) {
        Fill(i, gradient);
        StartReady();
      }
      return gradient;
    }));
  }
}

GradientSum::~GradientSum() {
  for (size_t i = 0; i < hooks_.size(); ++i) parameters_[i].remove_hook(hooks_[i]);
}

void GradientSum::Begin() {
  summing_ = !buckets_.empty();
  started_ = 0;
  std::ranges::fill(filled_, 0);
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
}

namespace {

// Flags of a gradient beside 0, summed over the ranks. By rows: it is sparse, and so is the sum.
constexpr float kThere = 1;
constexpr float kThereByRows = 1 << 16;  // Beyond the number of ranks.

Tensor Dense(const Tensor& gradient) {
  return gradient.defined() && gradient.is_sparse() ? gradient.to_dense() : gradient;
}

}  // namespace

void GradientSum::Fill(size_t parameter, const Tensor& own_gradient) {
  if (filled_[parameter] != 0) return;
  filled_[parameter] = 1;
  Bucket& bucket = buckets_[bucket_of_[parameter]];
  const auto at = std::ranges::find(bucket.parameters, parameter) - bucket.parameters.begin();
  const Tensor& own = parameters_[parameter];
  const torch::NoGradGuard no_grad;
  auto place = bucket.numbers.narrow(0, bucket.offsets[static_cast<size_t>(at)], own.numel());
  // Batches before this one are in the parameter's gradient.
  const Tensor before = Dense(own.grad());
  const Tensor gradient = Dense(own_gradient);
  float flag = 0;
  for (const Tensor& part : {own_gradient, own.grad()}) {
    if (part.defined()) flag = std::max(flag, part.is_sparse() ? kThereByRows : kThere);
  }
  bucket.numbers[bucket.elements + at] = flag;
  if (gradient.defined()) {
    place.copy_(gradient.reshape({-1}));
    if (before.defined()) place.add_(before.reshape({-1}));
  } else if (before.defined()) {
    place.copy_(before.reshape({-1}));
  } else {
    place.zero_();
  }
  --bucket.missing;
}

// In the same order on all ranks.
void GradientSum::StartReady() {
  while (started_ < buckets_.size() && buckets_[started_].missing == 0) {
    Bucket& bucket = buckets_[started_++];
    bucket.wait = Ranks::Here().StartSum(bucket.numbers);
  }
}

void GradientSum::Finish() {
  if (!summing_) return;
  summing_ = false;
  for (size_t i = 0; i < parameters_.size(); ++i) Fill(i, Tensor());
  StartReady();
  const torch::NoGradGuard no_grad;
  for (Bucket& bucket : buckets_) {
    bucket.wait();
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      Tensor& parameter = parameters_[bucket.parameters[k]];
      const auto sum =
          bucket.numbers.narrow(0, bucket.offsets[k], parameter.numel()).view(parameter.sizes());
      const auto flag = bucket.numbers[bucket.elements + static_cast<int64_t>(k)].item<float>();
      parameter.mutable_grad() = flag == 0              ? Tensor()
                                 : flag >= kThereByRows ? sum.to_sparse(1)
                                                        : sum;
    }
  }
}

}  // namespace kibitz::learn
