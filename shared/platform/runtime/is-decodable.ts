/** Returns whether every percent sign starts a valid UTF-8 escape. */
export function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    // `decodeURIComponent` throws only for an invalid escape.
    return false;
  }
}
