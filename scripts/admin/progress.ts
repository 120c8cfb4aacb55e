/** Says on the terminal how far a long command is, in one line; a program that reads the answer is not told. */
export function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${text}`);
}

export function endProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
}
