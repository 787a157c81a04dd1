// CPU allocator that hands out consecutive pieces of one block of shared memory while it is open.
//
// Installed with c10::SetCPUAllocator in the candidate, so that the outputs of a call lie in memory the judge owns.
// Runs on the untrusted side: nothing the judge concludes depends on it. Outside of open..close, and when the block is
// full, torch's own allocator serves. A piece given back is not reused before the block is opened again, and a piece that
// is kept (a workspace made in a later call than the first) is not handed out a second time.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

namespace {

constexpr size_t kAlignment = 64;  // c10's own alignment of CPU storage: one cache line, one AVX-512 register

std::mutex mutex;  // of everything up to `open_`
uint8_t* next = nullptr;
uint8_t* base = nullptr;
uint8_t* end = nullptr;
// Pieces in use, with their sizes; of earlier blocks as well. Never destroyed: tensors may outlive static objects.
auto& live = *new std::map<uint8_t*, size_t>;

std::atomic<bool> open_{false};
std::atomic<uint64_t> failed{0};
std::atomic<uint64_t> allocated{0};
c10::Allocator* fallback = nullptr;

bool give_back(void* piece) {
  const std::lock_guard<std::mutex> lock(mutex);
  return live.erase(static_cast<uint8_t*>(piece)) > 0;
}

void release_piece(void* piece) { give_back(piece); }

// torch may free by raw pointer what it allocated here; the block's own pieces must not reach free().
void release(void* piece) {
  if (!give_back(piece)) {
    fallback->raw_deleter()(piece);
  }
}

// Next free piece of `bytes`, or null when the block is full.
uint8_t* take(size_t bytes) {
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard<std::mutex> lock(mutex);
  uint8_t* piece = next;
  while (rounded >= bytes && rounded <= static_cast<size_t>(end - piece)) {
    auto after = live.lower_bound(piece + rounded);
    const auto before = after == live.begin() ? live.end() : --after;
    if (before == live.end() || before->first + before->second <= piece) {
      live[piece] = rounded;
      next = piece + rounded;
      return piece;
    }
    piece = before->first + before->second;
  }
  return nullptr;
}

class Arena final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    allocated.fetch_add(bytes, std::memory_order_relaxed);
    if (open_.load(std::memory_order_relaxed) && bytes > 0) {
      if (uint8_t* piece = take(bytes)) {
        return {piece, piece, &release_piece, c10::Device(c10::DeviceType::CPU)};
      }
      failed.fetch_add(1);
    }
    return fallback->allocate(bytes);
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

Arena arena;

}  // namespace

extern "C" {

void arena_install() {
  if (fallback == nullptr) {
    fallback = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&arena, /*priority=*/255);
  }
}

void arena_open(void* start, size_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    base = static_cast<uint8_t*>(start);
    end = base + bytes;
    next = base;
  }
  failed.store(0);
  open_.store(true);
}

void arena_close() { open_.store(false); }

size_t arena_used() {
  const std::lock_guard<std::mutex> lock(mutex);
  return static_cast<size_t>(next - base);
}

// Pieces in use that lie in a range.
size_t arena_live(void* start, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto first = live.lower_bound(static_cast<uint8_t*>(start));
  return static_cast<size_t>(std::distance(first, live.lower_bound(static_cast<uint8_t*>(start) + bytes)));
}

uint64_t arena_allocated() { return allocated.load(); }

uint64_t arena_failed() { return failed.load(); }

}  // extern "C"
