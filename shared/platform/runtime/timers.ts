/** Maximum delay of a timer, in milliseconds. Node fires timers with a longer delay immediately. */
export const maxTimerMs = 2 ** 31 - 1;
