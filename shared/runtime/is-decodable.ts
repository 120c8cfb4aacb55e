/** Whether every percent sign begins an escape of UTF-8. */
export function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    // It throws on nothing but a wrong escape.
    return false;
  }
}
