/** Reads what this browser keeps for the site. Null if there is nothing, or if it may keep nothing. */
export function readKept(name: string): string | null {
  try {
    return localStorage.getItem(`mg.${name}`);
  } catch {
    // Storage is switched off.
    return null;
  }
}

/** @param value null deletes it */
export function keep(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`mg.${name}`);
    else localStorage.setItem(`mg.${name}`, value);
  } catch {
    // Storage is switched off or full. Nothing depends on it.
  }
}

const cookieSeconds = 400 * 24 * 3600;

/** Tells the server a choice that it needs to render the next page. */
export function setChoiceCookie(name: string, value: string): void {
  document.cookie = `${name}=${value}; Path=/; Max-Age=${cookieSeconds}; SameSite=Lax`;
}
