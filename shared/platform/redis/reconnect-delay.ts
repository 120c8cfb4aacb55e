/** Milliseconds between two attempts to connect, from 100 to 1000. @param attempt counts from 1 */
export const reconnectDelayMs = (attempt: number): number => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000);
