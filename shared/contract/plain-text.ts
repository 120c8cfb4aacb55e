/**
 * Controls, ends of lines and paragraphs, and the characters that override or isolate the direction of text (UAX #9): with
 * those a text is shown in another order than it is written, in pages and mails of others as well.
 */
const misleading = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** Whether a text is one line that is shown as it is written. */
export const isPlainText = (text: string): boolean => !misleading.test(text);
