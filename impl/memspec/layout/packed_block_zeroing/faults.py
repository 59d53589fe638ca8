"""Broken twins: what was really released or reported, guards that were taken away, and the opposite of each rule."""

from __future__ import annotations

from typing import Any

from memspec.conformance import Fault, Origin, variant
from memspec.layout.packed_block_zeroing import reference, twins


def fault(name: str, breaks: str, origin: Origin, seen_in: str, note: str, **changed: Any) -> Fault:
    return Fault(name, lambda: variant(reference, **changed), frozenset(breaks.split()), origin, seen_in, note)


# fmt: off
RELEASED = (
    fault("span-is-stride", "page-span neighbours-untouched inside-the-allocation", "released", "vLLM 0.27.1",
          "One number served as distance and as length, which is right for a layer that has its allocation to itself.",
          segments_of=twins.changed_segments(lambda s: s._replace(span=s.block_stride))),
    fault("first-view-wins", "widest-span order-independent every-due-byte", "released", "vLLM 0.28.0",
          "Skips a second view at a known address as a repetition, although it can be the wider one.",
          segments=twins.first_wins),
    fault("one-page-size", "mixed-page-sizes", "released", "vLLM 0.27.0, vllm-project/vllm #49696",
          "Asserts that all layers have pages of one size, because one number was kept for all of them.",
          segments=twins.one_page_size),
    fault("common-divisor-grid", "launch-fits", "released", "vLLM 0.27.1, vllm-project/vllm PR #52058",
          "Chunks divide every span, so that no store needs a mask; one odd span makes them tiny and the grid huge.",
          launch_grid=twins.divisor_grid, program_work=twins.divisor_work),
    fault("rectangular-grid", "no-idle-programs", "released", "vLLM 0.28.0 to 0.33.0",
          "Gives every segment the chunks of the longest one; the programs past a short span leave at once.",
          launch_grid=twins.rectangle, program_work=twins.rectangle_work),
    fault("full-attention-only", "every-attention-kind", "released", "vLLM 0.27.1 and commit d6af803",
          "Tests for the first class of attention caches; sliding-window and chunked layers keep stale bytes.",
          recorded_groups=twins.full_attention_groups, zeroed_layers=twins.full_attention_layers),
    fault("state-caches-alone", "zeroed-where-misread", "released", "before vllm-project/vllm PR #47574",
          "Zeroes for state caches and overlooks that two attention precisions misread each other as well.",
          needs_zeroing=twins.state_caches_alone),
    fault("long-span-accepted", "span-within-stride", "released", "vLLM 0.33.0",
          "Checks that sizes are whole words and not that a page ends before the next block begins.",
          segments_of=twins.long_spans),
    fault("record-not-withdrawn", "record-withdrawn", "released", "vLLM 0.33.0",
          "A load's own blocks are never recorded, but the record of their former owner stands.",
          begin_load=twins.record_kept),
    fault("first-runner-only", "whichever-runner", "released", "before vllm-project/vllm PR #43990",
          "One of two model runners never looked at the list of blocks to clear.", deliver=twins.first_runner_only),
)

REPORTED = (
    fault("id-times-page", "block-address every-due-byte", "reported", "report of a packed-zeroing defect",
          "Takes the page for the distance between blocks, which is how the defect was first described.",
          segments_of=twins.changed_segments(lambda s: s._replace(block_stride=s.span))),
    fault("narrow-offsets", "wide-offsets", "reported",
          "vllm-project/vllm-xpu-kernels #445, lightseekorg/tokenspeed #501",
          "Multiplies id and stride in 32 bits; the product wraps and the clear lands 4 GiB lower.",
          cleared_intervals=twins.narrow_intervals),
    fault("shared-id-buffer", "ids-of-its-own", "prototype", "what vLLM's fresh pinned buffer for each call avoids",
          "Refills one pinned buffer while the copy of the call before it is still queued.",
          id_buffer=twins.shared_buffer()),
    fault("count-without-repeats", "duplicates-count-once", "prototype", "",
          "Counts distinct ids and then reads that many from the list with repetitions.",
          clear=twins.count_without_repeats),
    fault("odd-piece-lost", "work-once", "prototype", "",
          "Cuts spans into whole chunks and forgets the masked tail.", work_list=twins.whole_chunks),
    fault("pieces-on-y", "launch-fits", "prototype", "",
          "Puts the long dimension on y, where a device launches 65,535 programs.", launch_grid=twins.pieces_on_y,
          program_work=twins.one_piece_on_y),
    fault("kernel-block-strides", "virtual-blocks block-address", "prototype", "",
          "Steps by kernel blocks where ids count logical blocks.", segments_of=twins.kernel_strides),
    fault("outer-dimension-spanned", "outer-dimensions", "prototype", "",
          "Takes V, which lies after all of K, for a part of K's page.", segments_of=twins.spanning_outer),
    fault("every-earlier-dimension-outer", "outer-dimensions page-span", "prototype", "",
          "Takes each dimension before the block dimension for an outer one, also those inside a block.",
          outer_dimensions=twins.everything_outer),
    fault("dense-span", "page-span every-due-byte", "prototype", "",
          "Multiplies sizes and ignores strides, so a padded page loses its tail.", page_span=twins.dense_span),
    fault("copies-first", "before-the-copies", "prototype", "",
          "Clears after the copy-on-write copies and wipes what they brought.", deliver=twins.copies_first),
    fault("unaligned-wide-stores", "wide-stores-aligned", "prototype", "",
          "Assumes that every page is whole aligned 16-byte words.", wide_body=twins.everything_wide),
    fault("words-only", "mostly-wide", "released", "read from vLLM 0.33.0",
          "Addresses from a table carry no alignment that the compiler could use, so every store has four bytes.",
          wide_body=twins.all_words),
    fault("warm-up-always", "warm-up-in-range", "prototype", "", "Warms up on block 0 of a cache that has none.",
          warm_up_ids=twins.warm_up_always),
)

GUARDS = (
    fault("no-word-check", "whole-words", "guard removed", "", "Rounds odd sizes down to words and misses bytes.",
          check_words=twins.no_check),
    fault("no-view-check", "well-formed", "guard removed", "", "Believes any description of a view.",
          check_view=twins.no_check),
    fault("no-ratio-check", "whole-kernel-blocks", "guard removed", "", "Rounds the kernel blocks of a block down.",
          kernel_blocks_per_block=twins.any_ratio),
    fault("no-count-check", "counts-agree", "guard removed", "", "Takes the first view's number of blocks for all.",
          block_count=twins.first_count),
    fault("no-stride-check", "unequal-strides", "guard removed", "",
          "Keeps the wider of two views and drops the other's stride.", segments=twins.any_strides),
    fault("ids-out-of-range-accepted", "id-in-range", "guard removed", "",
          "Trusts the allocator and computes an address from whatever id it is given.",
          check_blocks=twins.any_blocks),
    fault("ids-clamped", "id-in-range", "prototype", "",
          "Moves an id outside the cache to the nearest block, which is live.", check_blocks=twins.clamped),
    fault("grid-not-checked", "oversized-grid-refused", "guard removed", "", "Leaves it to the driver to fail.",
          check_grid=twins.no_check),
    fault("any-unwritten-block", "only-its-own-blocks", "guard removed", "", "Records whatever a failed load names.",
          end_load=twins.anybodys_blocks),
)

OPPOSITES = (
    fault("clears-nothing", "every-due-byte", "opposite", "", "Never wipes a live block.", clear=twins.nothing),
    fault("clears-half", "every-due-byte", "opposite", "", "Clears the first half of each interval.",
          clear=twins.first_half),
    fault("clears-everything", "neighbours-untouched", "opposite", "", "Never leaves a stale byte.",
          clear=twins.whole_rows),
    fault("writes-ones", "every-due-byte", "opposite", "", "Overwrites stale bytes with something else than zero.",
          clear=twins.written_as_ones),
    fault("block-0-at-least", "nothing-to-do", "opposite", "", "Clears block 0 when it is given no id.",
          clear=twins.at_least_block_0),
    fault("empty-view-kept", "empty-dimension", "opposite", "", "Makes a segment of a view without elements.",
          segments_of=twins.with_empty_pages),
    fault("always-zeroed", "uniform-left-alone", "opposite", "", "Zeroes caches in which nothing can be misread.",
          needs_zeroing=twins.always),
    fault("host-precision-counted", "uniform-left-alone", "opposite", "",
          "Counts a group on the host as a second precision.", needs_zeroing=twins.counting_the_host),
    fault("state-caches-zeroed", "state-caches-untouched", "opposite", "",
          "Clears state caches as if they were pages.", zeroed_layers=twins.all_layers,
          recorded_groups=twins.all_groups),
    fault("ring-recorded", "state-caches-untouched", "opposite", "",
          "Records the blocks of a ring, which lives on in place.", recorded_groups=twins.ring_recorded),
    fault("every-storage", "pages-only", "opposite", "", "Makes segments of caches that are no tensor.",
          zeroed_layers=twins.every_storage),
    fault("not-drained", "drained-every-step", "opposite", "",
          "Leaves the record as it is after a step and clears live blocks in the next.", deliver=twins.not_drained),
    fault("forward-first", "clear-before-read", "opposite", "", "Clears when the step has read the blocks.",
          deliver=twins.forward_first),
    fault("load-recorded", "loads-left-alone", "opposite", "", "Records a load's blocks like any new ones.",
          begin_load=twins.load_recorded),
    fault("failed-load-forgotten", "failed-load-restores", "opposite", "",
          "Forgets that a failed load leaves blocks unwritten.", end_load=twins.forgotten),
)

FAULTS: tuple[Fault, ...] = (*RELEASED, *REPORTED, *GUARDS, *OPPOSITES)
