/** Milliseconds. A timer that is set for longer fires at once. */
export const longestTimerMs = 2 ** 31 - 1;
