import { useEffect, useState } from 'preact/hooks';
import { lazy } from '../lib/lazy.tsx';
import type { DialogProps } from './dialog.tsx';

const load = () => import('./dialog.tsx');
const Loaded = lazy(
  async () => (await load()).Dialog,
  () => null,
);

/** A dialog whose script is loaded after the page is shown: for what every page has, and few visitors open. */
export function LaterDialog({ isOpen, ...props }: DialogProps) {
  const [wasOpened, setWasOpened] = useState(isOpen);
  useEffect(() => {
    // If that fails, opening it tries again.
    load().catch(() => undefined);
  }, []);
  useEffect(() => {
    if (isOpen) setWasOpened(true);
  }, [isOpen]);
  // Once opened it stays, so that closing it gives the focus back.
  return isOpen || wasOpened ? <Loaded {...props} isOpen={isOpen} /> : null;
}
