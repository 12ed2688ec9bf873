/* Where in a text a claim is to be looked for. Found by common words: a place to look at, not what the judge read. */

const LEAST_SHARE = 0.3;

function wordsOf(text) {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  return new Set(words.filter((word) => word.length > 2 || /\p{N}/u.test(word)));
}

function sentencesOf(text) {
  if (typeof Intl !== "undefined" && Intl.Segmenter) {
    const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });
    return [...segmenter.segment(text)].map((part) => part.segment);
  }
  return text.match(/[^.!?\n]+[.!?\n]*\s*|[.!?\n]+\s*/g) || [text];
}

/* The share of the claim's words that a sentence has. */
function overlap(claimWords, sentence) {
  if (claimWords.size === 0) return 0;
  const words = wordsOf(sentence);
  return [...claimWords].filter((word) => words.has(word)).length / claimWords.size;
}

/* The sentence of a text that has most words of a claim; null where none has enough. */
function nearestSentence(claim, text) {
  const claimWords = wordsOf(claim);
  let best = null;
  let bestShare = 0;
  for (const sentence of sentencesOf(text)) {
    const share = overlap(claimWords, sentence);
    if (share >= LEAST_SHARE && share > bestShare) {
      best = sentence;
      bestShare = share;
    }
  }
  return best;
}
