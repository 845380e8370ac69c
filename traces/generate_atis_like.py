#!/usr/bin/env python3
"""Writes the data set traces/atis_like: invented travel enquiries in the ATIS three-file format.

    python3 traces/generate_atis_like.py [FOLDER]      default: atis_like beside this script

The output depends on this file alone, not on the Python version: the random numbers are made here.
"""
import pathlib
import sys

SEED = 20501
TRAIN_SENTENCES = 600
TEST_SENTENCES = 100
MIN_WORDS, MAX_WORDS = 3, 14


class Random:
    """Linear congruential generator modulo 2^64 (multiplier and increment of MMIX); the high bits are used."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) * bound >> 31

    def pick(self, items):
        return items[self.below(len(items))]


# Slot fillers. Every word of a filler gets the tag of its slot: B- for the first, I- for the rest.
PLACES = ["tarvik", "ostmere", "velloria", "quensby", "drellick", "fennmoor", "kestwick", "marrowgate", "ilvane",
          "sorrel bay", "port aster", "north callow", "saint orrin", "lower thrane", "gullhaven", "ampleforth cross",
          "brackwater", "tinsel point", "old hessary", "wyndle"]
TEST_ONLY_PLACES = ["corrowdale", "east pellam"]  # words the training split does not know
FILLERS = {
    "from_place": PLACES,
    "to_place": PLACES,
    "via_place": PLACES,
    "at_place": PLACES,
    "day": ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "today", "tomorrow"],
    "part_of_day": ["morning", "afternoon", "evening", "night"],
    "time": ["six", "seven", "eight", "nine thirty", "noon", "quarter past ten", "half past four", "midnight"],
    "vehicle": ["train", "ferry", "coach", "tram", "sleeper", "railcar", "night boat", "zeppelin"],
    "class": ["first class", "second class", "standard", "panorama car", "cabin"],
    "operator": ["blue heron", "coastline", "grand northern", "silverwake", "hilltop rail"],
    "passengers": ["two", "three", "four", "five"],
    "rider": ["child", "student", "senior", "dog"],
    "price": ["ten crowns", "twenty crowns", "fifty crowns"],
    "luggage": ["bicycle", "suitcase", "pram", "surfboard"],
    "meal": ["breakfast", "lunch", "dinner", "vegan snack"],
    "order": ["earliest", "latest", "cheapest", "fastest"],
}

# <slot> stands for a filler, [ ... ] for a part that is left out half of the time.
PATTERNS = {
    "find_trip": [
        "i need a <vehicle> from <from_place> to <to_place> [on <day>] [<part_of_day>]",
        "show me the <order> <vehicle> to <to_place> [via <via_place>]",
        "is there a <vehicle> leaving <from_place> after <time> [on <day>]",
        "which <operator> services reach <to_place> before <time>",
        "find a <class> seat from <from_place> to <to_place> [for <passengers>]",
        "please list every <vehicle> that stops in <at_place> [on <day>]",
        "can we go from <from_place> to <to_place> [through <via_place>] <day> <part_of_day>",
        "when does the <order> <vehicle> for <to_place> leave",
    ],
    "ask_fare": [
        "how much is a <class> ticket to <to_place>",
        "what does the <vehicle> from <from_place> to <to_place> cost [on <day>]",
        "what is the fare for <passengers> people to <to_place> [with a <rider>]",
        "tell me the price of a <rider> ticket from <from_place>",
        "any tickets to <to_place> under <price> [<day>]",
    ],
    "ask_duration": [
        "how long does the <vehicle> take to <to_place>",
        "how many hours is it from <from_place> to <to_place> [by <vehicle>]",
        "what is the travel time to <to_place> via <via_place>",
    ],
    "ask_platform": [
        "which platform does the <time> <vehicle> leave from",
        "where do i board the <operator> <vehicle> in <at_place>",
        "what pier is the <vehicle> to <to_place> at",
    ],
    "ask_delay": [
        "is the <time> <vehicle> to <to_place> late [<day>]",
        "how late is the <operator> <vehicle> from <from_place>",
        "has the <part_of_day> <vehicle> already left <at_place>",
    ],
    "ask_luggage": [
        "may i take a <luggage> on the <vehicle> [to <to_place>]",
        "does <operator> charge for a <luggage>",
        "is there room for a <luggage> on the <time> <vehicle>",
    ],
    "ask_meal": [
        "is <meal> served on the <vehicle> to <to_place>",
        "do you serve <meal> in <class> [on <day>]",
        "what kind of <meal> does <operator> offer",
    ],
    "ask_operator": [
        "who runs the <vehicle> from <from_place> to <to_place>",
        "which company goes to <to_place> [<day> <part_of_day>]",
        "does <operator> go to <to_place>",
    ],
    "cancel_trip": [
        "cancel my <vehicle> to <to_place> [on <day>]",
        "i want to return <passengers> tickets for <day>",
        "please refund the <class> seat from <from_place>",
    ],
    "find_trip#ask_fare": [
        "show <vehicle> times and prices from <from_place> to <to_place>",
        "when does the <order> <vehicle> to <to_place> leave and what is the fare",
    ],
}
TEST_ONLY_PATTERNS = {
    "ask_fare#ask_duration": ["how long and how much is the <vehicle> to <to_place>"],
    "ask_meal": ["is <meal> on deck <deck> open [on <day>]"],
}
TEST_ONLY_FILLERS = {"deck": ["one", "two"]}

# How often an intent is asked for.
WEIGHTS = {"find_trip": 10, "ask_fare": 6, "ask_duration": 3, "ask_platform": 3, "ask_delay": 3, "ask_luggage": 2,
           "ask_meal": 2, "ask_operator": 2, "cancel_trip": 2, "find_trip#ask_fare": 2}


def sentence(random, pattern, fillers):
    """One filled-in pattern: words and tags."""
    words, tags = [], []
    keep = True
    for piece in pattern.replace("[", "[ ").replace("]", " ]").split():
        if piece == "[":
            keep = random.below(2) == 1
        elif piece == "]":
            keep = True
        elif not keep:
            continue
        elif piece.startswith("<"):
            slot = piece[1:-1]
            filler = random.pick(fillers[slot]).split()
            words += filler
            tags += ["B-" + slot] + ["I-" + slot] * (len(filler) - 1)
        else:
            words.append(piece)
            tags.append("O")
    return words, tags


def sentences(random, count, patterns, weights, fillers, taken):
    """`count` different sentences, none of them in `taken`, which they are added to."""
    intents = [intent for intent in patterns for _ in range(weights.get(intent, 1))]
    result = []
    while len(result) < count:
        intent = random.pick(intents)
        words, tags = sentence(random, random.pick(patterns[intent]), fillers)
        text = " ".join(words)
        places = [words[i] for i, tag in enumerate(tags) if tag.startswith("B-") and tag.endswith("_place")]
        if text in taken or len(set(places)) < len(places) or not MIN_WORDS <= len(words) <= MAX_WORDS:
            continue
        taken.add(text)
        result.append((text, " ".join(tags), intent))
    return result


def write(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    for name, column in (("seq.in", 0), ("seq.out", 1), ("label", 2)):
        with open(folder / name, "w", encoding="utf-8", newline="\n") as out:
            out.writelines(row[column] + "\n" for row in rows)


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "atis_like"
    random = Random(SEED)
    taken = set()
    train = sentences(random, TRAIN_SENTENCES, PATTERNS, WEIGHTS, FILLERS, taken)

    # One test sentence in ten holds something that the training split does not: a word, a tag or an intent.
    odd = TEST_SENTENCES // 10
    test = sentences(random, TEST_SENTENCES - odd, PATTERNS, WEIGHTS, FILLERS, taken)
    places = {slot: TEST_ONLY_PLACES for slot in ("from_place", "at_place", "to_place")}
    unknown_places = {**FILLERS, **places}
    test += sentences(random, odd - 4, {"find_trip": PATTERNS["find_trip"][1:4]}, {}, unknown_places, taken)
    test += sentences(random, 4, TEST_ONLY_PATTERNS, {}, {**FILLERS, **TEST_ONLY_FILLERS}, taken)
    for i in range(len(test) - 1, 0, -1):
        j = random.below(i + 1)
        test[i], test[j] = test[j], test[i]

    write(target / "train", train)
    write(target / "test", test)


if __name__ == "__main__":
    main()
