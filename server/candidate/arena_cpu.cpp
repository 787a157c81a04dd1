// CPU allocator that hands out consecutive pieces of one block of shared memory while it is open.
//
// Installed with c10::SetCPUAllocator in the candidate, so that the outputs of a call lie in memory the judge owns.
// Runs on the untrusted side: nothing the judge concludes depends on it. Outside of open..close, and when the block is
// full, torch's own allocator serves. A piece given back is not reused before the block is opened again.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace {

constexpr size_t kAlignment = 64;  // c10's own alignment of CPU storage: one cache line, one AVX-512 register

std::atomic<uint8_t*> next{nullptr};
uint8_t* base = nullptr;
uint8_t* end = nullptr;
std::atomic<bool> open_{false};
std::atomic<uint64_t> failed{0};
std::atomic<uint64_t> allocated{0};
c10::Allocator* fallback = nullptr;

void keep(void*) {}

// torch may free by raw pointer what it allocated here; the block's own pieces must not reach free().
void release(void* piece) {
  if (piece < base || piece >= end) {
    fallback->raw_deleter()(piece);
  }
}

class Arena final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    allocated.fetch_add(bytes, std::memory_order_relaxed);
    if (open_.load(std::memory_order_relaxed) && bytes > 0) {
      const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
      uint8_t* piece = next.load(std::memory_order_relaxed);
      while (rounded >= bytes && rounded <= static_cast<size_t>(end - piece)) {
        if (next.compare_exchange_weak(piece, piece + rounded)) {
          return {piece, piece, &keep, c10::Device(c10::DeviceType::CPU)};
        }
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
  base = static_cast<uint8_t*>(start);
  end = base + bytes;
  next.store(base);
  failed.store(0);
  open_.store(true);
}

void arena_close() { open_.store(false); }

size_t arena_used() { return static_cast<size_t>(next.load() - base); }

uint64_t arena_allocated() { return allocated.load(); }

uint64_t arena_failed() { return failed.load(); }

}  // extern "C"
