// The processes that train one network together (base/job.h): each takes its part of every batch,
// and their gradients are summed over Gloo. Alone, nothing is sent.
//
//   Ranks& ranks = Ranks::Here();
//   ranks.Sum(counts);                                // The same numbers on all ranks.
//   GradientSum gradients(parameters);
//   gradients.Begin();                                // Before the last backward of a step.
//   loss.backward();                                  // Buckets are on their way meanwhile.
//   gradients.Finish();
//
// All ranks make the same calls in the same order. When a rank fails, all end (base/job_watch.h).
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/job.h"

namespace kibitz::learn {

class Ranks {
 public:
  // Of this process. The first call joins the others; it throws Error when they do not come.
  static Ranks& Here();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.ranks; }
  // Writes files and says what happens.
  bool first() const { return rank() == 0; }

  // Over all ranks, in place.
  void Sum(std::span<double> numbers);
  // Every rank's text, by rank.
  std::vector<std::string> Gather(const std::string& text);
  // Starts to sum a tensor of float32 over all ranks, in place; the result waits for it.
  std::function<void()> StartSum(torch::Tensor tensor);
  // Seconds spent waiting for others.
  double waited() const;

  // Leaves the job: at the end of all work, or because of an error.
  void Done();
  void Fail(const std::string& message);

 private:
  struct Group;
  Ranks();
  JobPlace place_;
  std::unique_ptr<Group> group_;
};

// This rank's share of all ranks' rows of a batch: losses that are means over rows, times their
// share, sum to the mean over all. Alone 1.
double ShareOfRows(int64_t rows);

// Sums the gradients of all ranks in buckets, each as soon as backward has filled it.
class GradientSum {
 public:
  explicit GradientSum(std::vector<torch::Tensor> parameters);
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  void Begin();
  // Afterwards every parameter that has a gradient on any rank has the sum as its own.
  void Finish();

 private:
  struct Bucket {
    std::vector<size_t> parameters;
    // All gradients, and for each parameter 1 where it has one: no rank has some in every step.
    torch::Tensor numbers;
    int64_t elements = 0;          // Of the gradients.
    std::vector<int64_t> offsets;  // Of each parameter's.
    size_t missing = 0;
    std::function<void()> wait = nullptr;
  };
  void Fill(size_t parameter, const torch::Tensor& gradient);
  void StartReady();

  std::vector<torch::Tensor> parameters_;
  std::vector<Bucket> buckets_;  // In the order in which backward fills them.
  std::vector<size_t> bucket_of_;
  std::vector<char> filled_;
  size_t started_ = 0;
  bool summing_ = false;
  std::vector<unsigned> hooks_;
};

}  // namespace kibitz::learn
