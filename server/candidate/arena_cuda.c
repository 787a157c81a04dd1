/* Allocator that hands out consecutive pieces of one block of device memory.
 *
 * Loaded by torch.cuda.memory.CUDAPluggableAllocator in the candidate, so that the outputs of a call lie in memory the
 * judge owns. Runs on the untrusted side: nothing the judge concludes depends on it. torch's caching allocator sits on
 * top and asks for whole segments; a piece given back is not reused before arena_open is called again.
 */
#include <stddef.h>
#include <stdint.h>

static uint8_t *base, *next, *end;
static uint64_t failed;

#define ALIGNMENT 512u /* what cudaMalloc guarantees at least, and torch relies on */

void arena_open(void *start, size_t bytes)
{
    base = next = (uint8_t *)start;
    end = base + bytes;
    failed = 0;
}

size_t arena_used(void) { return (size_t)(next - base); }

uint64_t arena_failed(void) { return failed; }

void *arena_alloc(size_t bytes, int device, void *stream)
{
    (void)device;
    (void)stream;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded < bytes || rounded > (size_t)(end - next)) {
        failed += 1;
        return NULL; /* torch raises OutOfMemoryError for a null segment */
    }
    uint8_t *piece = next;
    next += rounded;
    return piece;
}

void arena_free(void *piece, size_t bytes, int device, void *stream)
{
    (void)piece;
    (void)bytes;
    (void)device;
    (void)stream;
}
