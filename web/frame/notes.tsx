import { useEffect, useState } from 'preact/hooks';
import { useCommon } from '../lib/language.tsx';

export function SkipLink() {
  const common = useCommon();
  const skip = (event: MouseEvent): void => {
    event.preventDefault();
    document.querySelector<HTMLElement>('#main')?.focus();
  };
  return (
    <a class="skip" href="#main" onClick={skip}>
      {common('skip')}
    </a>
  );
}

export function OfflineNote() {
  const common = useCommon();
  const [isOnline, setIsOnline] = useState(navigator.onLine);
  useEffect(() => {
    const update = (): void => setIsOnline(navigator.onLine);
    addEventListener('online', update);
    addEventListener('offline', update);
    return () => {
      removeEventListener('online', update);
      removeEventListener('offline', update);
    };
  }, []);
  return (
    <div role="status" class="offline">
      {isOnline ? null : <p>{common('offline')}</p>}
    </div>
  );
}
