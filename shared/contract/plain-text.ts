/**
 * Control characters, line and paragraph separators, and characters that override or isolate text direction (UAX #9).
 * The latter make a text appear in a different order than it is written, including in pages and mails of other users.
 */
const misleading = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** Spaces of any width, and characters that are invisible by themselves, such as a zero-width space. */
const blank = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Cf}]+$/u;

/** Returns whether a text is one line that is displayed as written. The caller checks for empty text by its length. */
export const isPlainText = (text: string): boolean => !misleading.test(text) && !blank.test(text);
