import { useEffect } from 'preact/hooks';
import { config } from './page-facts.ts';

export function setTitle(title: string | null): void {
  document.title = title === null ? config.name : `${title} · ${config.name}`;
}

/** For a page that shows one thing of many, such as a model: its name as the title. */
export function useTitle(title: string | null): void {
  useEffect(() => {
    if (title !== null) setTitle(title);
  }, [title]);
}
