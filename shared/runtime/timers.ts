/** Milliseconds. Node fires a timer immediately if it is set for longer. */
export const longestTimerMs = 2 ** 31 - 1;
