/** Returns whether a version such as `7.0.15` is older than one such as `7.0`. Unreadable versions are not older. */
export function isOlder(version: string, than: string): boolean {
  const parts = (text: string): number[] => (text.match(/\d+/g) ?? []).slice(0, 3).map(Number);
  const [found, wanted] = [parts(version), parts(than)];
  if (found.length === 0) return false;
  for (const [i, number] of wanted.entries()) {
    const difference = (found[i] ?? 0) - number;
    if (difference !== 0) return difference < 0;
  }
  return false;
}
