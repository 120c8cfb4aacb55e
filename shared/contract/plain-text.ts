/**
 * Controls, ends of lines and paragraphs, and the characters that override or isolate the direction of text (UAX #9): with
 * those a text is shown in another order than it is written, in pages and mails of others as well.
 */
const misleading = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** Spaces of any width, and characters that show nothing by themselves, such as a zero-width space. */
const blank = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Cf}]+$/u;

/** Whether a text is one line that is shown as it is written. An empty one is a matter of its length. */
export const isPlainText = (text: string): boolean => !misleading.test(text) && !blank.test(text);
