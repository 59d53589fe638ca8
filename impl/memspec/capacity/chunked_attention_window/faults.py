"""Broken twins: what was really released or reported, guards that were taken away, and the opposite of each rule."""

from __future__ import annotations

from typing import Any

from memspec.capacity.chunked_attention_window import reference
from memspec.capacity.chunked_attention_window.twins import lookups, spaces, windows
from memspec.conformance import Fault, Origin, variant


def fault(name: str, breaks: str, origin: Origin, seen_in: str, note: str, **changed: Any) -> Fault:
    return Fault(name, lambda: variant(reference, **changed), frozenset(breaks.split()), origin, seen_in, note)


# fmt: off
RELEASED = (
    fault("chunked-kind-unknown", "window-by-kind", "released", "vLLM 0.27.1, vllm-project/vllm #51150",
          "Knows sliding windows, recurrent state and full attention; a chunked-local group stops the engine at its start.",
          reported_window=windows.chunked_kind_unknown),
    fault("bare-assertions", "refused-by-kind-and-size", "released", "vLLM 0.28.0 to 0.33.0",
          "Asserts kind and size without a message, so that the log does not say which group or which number.",
          reported_window=windows.bare_assertions, check_size=windows.unnamed_size),
    fault("offload-chunk-unchecked", "refused-by-kind-and-size", "released", "vLLM 0.28.0 to 0.33.0",
          "Divides by whatever offload chunk it is given; a negative one gives a negative window.",
          check_size=windows.offload_chunk_unchecked),
    fault("extra-tokens-forgotten", "window-by-kind", "released", "vLLM 0.28.0 to 0.30.0",
          "Rounds a sliding window up and leaves out the tokens that are retained beyond it.",
          sliding_window_in_chunks=windows.without_extra),
    fault("window-off-the-grid", "asks-for-what-is-read no-false-hit", "released", "vLLM 0.30.0 to 0.33.0",
          "Widens the demand of sliding windows where a boundary leaves the grid, and takes chunked-local groups to need none.",
          demanded_chunks=windows.window_anywhere),
    fault("one-window-for-all-boundaries", "asks-for-what-is-read no-false-hit", "released", "vLLM 0.28.0 and 0.29.0",
          "Asks for the reported window wherever the boundary lies, for every kind of windowed group.",
          demanded_chunks=windows.window_of_any_kind),
    fault("pending-remembered", "pending-beside-is-forgotten", "released", "vLLM 0.28.0 and 0.29.0",
          "Keeps one flag for all pending chunks, also for those right of a gap, on which no answer can rest any more.",
          find_run=lookups.pending_remembered),
    fault("suffix-relative-chunks", "absolute-positions", "released", "simple CPU offload of vLLM 0.32.0",
          "Searches from the local prefix on as if it were token 0, so the attention chunks seem to begin elsewhere.",
          suffix_hit=spaces.relative),
    fault("any-block-size", "blocks-fit-the-chunk", "released", "vLLM 0.33.0",
          "Rounds the start of the attention chunk down to a block and goes on from there with an empty block.",
          check_device=spaces.any_blocks),
    fault("trailing-chunk-dropped", "finds-what-is-there last-token-computed", "reported", "vllm-project/vllm #52735",
          "Drops the last chunk of every group as if a draft could still change it; short windows never hit.",
          external_hit=lookups.trailing_chunk_dropped),
)

GUARDS = (
    fault("any-size", "refused-at-configuration refused-by-kind-and-size", "guard removed", "",
          "Raises a size below its limit to the limit and goes on.",
          check_size=windows.any_size),
    fault("unknown-kind-is-full", "refused-at-configuration refused-by-kind-and-size", "guard removed", "",
          "Takes a kind that it does not know for full attention.", reported_window=windows.unknown_is_full),
    fault("answers-believed", "request-in-range", "guard removed", "", "Takes whatever is no miss for a hit.",
          check_answers=lookups.no_check),
    fault("any-request", "request-in-range", "guard removed", "", "Believes any prompt, prefix and cap.",
          check_request=lookups.no_check),
    fault("any-groups", "request-in-range", "guard removed", "", "Does not compare groups with answers.",
          check_groups=lookups.any_groups),
    fault("device-limits-unchecked", "device-rule-alone", "guard removed", "",
          "Serves other alignments, draft drops and context ranks.", check_device=spaces.alone_unchecked),
)

WINDOWS = (
    fault("window-floored", "rounds-up asks-for-what-is-read no-false-hit", "opposite", "",
          "Counts whole offload chunks inside an attention chunk.", window_in_chunks=windows.floored,
          demanded_chunks=windows.floored_demand),
    fault("window-to-the-nearest", "rounds-up", "opposite", "",
          "Rounds to the nearest number of offload chunks, to zero where they are much longer.",
          window_in_chunks=windows.nearest),
    fault("one-chunk-too-many", "rounds-up asks-for-no-more finds-what-is-there", "opposite", "",
          "Adds a chunk for safety, which a stored attention chunk on the grid does not have.",
          window_in_chunks=windows.one_more),
    fault("hint-is-a-window", "hint-stays-unbounded", "opposite", "",
          "Takes the attention chunk that a full-attention group mentions for its window.",
          reported_window=windows.hinted),
    fault("slides", "reads-the-open-chunk", "opposite", "",
          "Takes the chunk for a sliding window: always the last tokens.", needed_chunks=windows.last_tokens),
    fault("finished-chunk-read", "reads-the-open-chunk", "opposite", "",
          "Counts the chunk of the last token, not that of the next one.", needed_chunks=windows.last_finished_chunk),
    fault("multiples-only", "exact-condition", "opposite", "",
          "Calls the window safe only where the offload chunk divides the attention chunk.",
          covers_every_boundary=windows.only_multiples),
    fault("always-enough", "exact-condition", "opposite", "", "Calls the window safe at every boundary.",
          covers_every_boundary=windows.always_enough, worst_need=windows.grids_meet),
    fault("worst-everywhere", "asks-for-no-more finds-what-is-there", "opposite", "",
          "Asks for the most that any boundary could read.", demanded_chunks=windows.worst_anywhere),
)

LOOKUPS = (
    fault("short-run-anywhere", "right-most-run no-false-hit", "opposite", "",
          "Accepts a run of any length, as if the last stored chunk were all that is read.",
          find_run=lookups.short_run_anywhere),
    fault("short-run-never", "right-most-run finds-what-is-there device-prefix-counts", "opposite", "",
          "Asks for a whole window also where the device holds the rest of it.", find_run=lookups.short_run_never),
    fault("left-most-run", "right-most-run finds-what-is-there", "opposite", "",
          "Stops at the first run from the left.", find_run=lookups.left_most_run),
    fault("pending-is-a-hit", "pending-extends-a-run no-false-hit open-answer-waits", "opposite", "",
          "Loads what is not readable yet.", find_run=lookups.pending_is_a_hit),
    fault("pending-is-a-miss", "pending-extends-a-run open-answer-waits", "opposite", "",
          "Gives up what is about to be readable.", find_run=lookups.pending_is_a_miss),
    fault("uncertain-is-a-miss", "uncertain-ends-a-run open-answer-waits", "opposite", "",
          "Answers before the store knows.", find_run=lookups.uncertain_is_a_miss),
    fault("uncertain-is-pending", "uncertain-ends-a-run", "opposite", "",
          "Lets a chunk that may not exist join a run.", find_run=lookups.uncertain_is_pending),
    fault("single-pass", "fixed-point no-false-hit asked-again-after-shortening", "opposite", "",
          "Asks every group once; a later one takes away the run on which an earlier answer stood.",
          external_hit=lookups.single_pass),
    fault("least-answer", "fixed-point no-false-hit", "opposite", "",
          "Takes the smallest of the groups' own hits for a hit of all.", external_hit=lookups.least_answer),
    fault("largest-answer", "no-false-hit fixed-point", "opposite", "", "Takes the largest of the groups' own hits.",
          external_hit=lookups.largest_answer),
    fault("open-at-any-boundary", "asked-again-after-shortening", "opposite", "",
          "Waits for an answer at a boundary that another group has ruled out.",
          external_hit=lookups.open_at_any_boundary),
    fault("open-is-served", "open-answer-waits no-false-hit", "opposite", "", "Does not wait.",
          external_hit=lookups.open_is_served),
    fault("open-is-no-hit", "open-answer-waits", "opposite", "", "Takes an open answer for no hit.",
          external_hit=lookups.open_is_no_hit),
    fault("whole-prompt", "last-token-computed", "opposite", "", "Leaves no token to compute.",
          furthest_boundary=lookups.whole_prompt),
    fault("last-chunk-given-up", "last-token-computed", "opposite", "",
          "Rounds the boundary down to a whole chunk when one token has to be left.",
          furthest_boundary=lookups.whole_chunks_short),
    fault("device-prefix-ignored", "device-prefix-counts", "opposite", "",
          "Asks the store for what the device holds.", served_boundary=lookups.from_token_0),
    fault("part-chunks", "less-than-a-chunk no-false-hit", "opposite", "",
          "Claims the tokens of a chunk that nobody has asked for.", external_hit=lookups.part_chunks),
    fault("never-hits", "finds-what-is-there", "opposite", "", "Never claims too much.", external_hit=lookups.never),
    fault("device-rule-for-the-store", "two-rules no-false-hit", "opposite", "",
          "Takes what the device may leave empty for something that the store has.",
          external_hit=lookups.device_rule_for_the_store),
)

SPACES = (
    fault("as-full-attention", "loads-what-is-read planned-by-the-window admission-cap", "opposite", "",
          "Treats chunked-local groups as full attention: nothing is misread, and nothing is saved.",
          chunks_to_load=spaces.all_loaded, planned_chunks=spaces.planned_in_full,
          admission_blocks=spaces.as_full_attention),
    fault("store-rule-for-the-device", "two-rules placeholders-then-cached", "opposite", "",
          "Wants finished attention chunks to be resident on the device.", device_hit=spaces.blocks_looked_up),
    fault("last-tokens-kept", "placeholders-then-cached", "opposite", "",
          "Keeps the last tokens of the length of a chunk, as for a sliding window.",
          skipped_tokens=spaces.last_tokens_kept),
    fault("no-suffix", "suffix-on-the-grid", "opposite", "", "Refuses every suffix, also one on the grid.",
          suffix_hit=spaces.no_suffix),
    fault("whole-window-loaded", "loads-what-is-read", "opposite", "", "Copies all that was asked for.",
          chunks_to_load=spaces.whole_window_loaded),
    fault("last-part-not-loaded", "loads-what-is-read", "opposite", "",
          "Leaves out the offload chunk in which the boundary lies.", chunks_to_load=spaces.whole_chunks_loaded),
    fault("planned-as-the-window", "planned-by-the-window", "opposite", "",
          "Plans a window also for requests that are shorter.", planned_chunks=spaces.planned_as_the_window),
    fault("in-flight-forgotten", "admission-cap", "opposite", "",
          "Admits a request without the tokens that are scheduled and not settled.",
          admission_blocks=spaces.settled_tokens_only),
    fault("beyond-the-length", "admission-cap", "opposite", "", "Reserves more than the longest request can fill.",
          admission_blocks=spaces.beyond_the_length),
)

FAULTS: tuple[Fault, ...] = (*RELEASED, *GUARDS, *WINDOWS, *LOOKUPS, *SPACES)
