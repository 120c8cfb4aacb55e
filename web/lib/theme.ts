import { setChoiceCookie } from './kept.ts';
import { createStore, useStore } from './store.ts';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const root = document.documentElement;
const chosen = themes.find((theme) => theme === root.dataset['theme']) ?? 'system';
const store = createStore<Theme>(chosen);

export const useTheme = (): Theme => useStore(store);

/** The server reads the cookie, so that the next page begins in these colours. */
export function switchTheme(theme: Theme): void {
  setChoiceCookie('mg_theme', theme);
  if (theme === 'system') delete root.dataset['theme'];
  else root.dataset['theme'] = theme;
  const meta = document.querySelector('meta[name="color-scheme"]');
  meta?.setAttribute('content', theme === 'system' ? 'light dark' : theme);
  store.set(theme);
}

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

/** Calls the listener when the colours change, by choice or by the system. */
export function onThemeChange(listener: () => void): () => void {
  const stop = store.listen(listener);
  systemIsDark.addEventListener('change', listener);
  return () => {
    stop();
    systemIsDark.removeEventListener('change', listener);
  };
}
