import { useLocation } from 'wouter-preact';
import { Icon } from '../ui/icon.tsx';
import { useConsole } from './texts.ts';

/** Finds whatever a customer names: an id, an address, a name. */
export function Finder() {
  const t = useConsole();
  const [, navigate] = useLocation();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const text = form.querySelector('input')!.value.trim();
    if (text === '') return;
    navigate(`/admin/accounts?search=${encodeURIComponent(text)}`);
    form.reset();
  };
  return (
    <form class="finder" role="search" onSubmit={submit}>
      <label class="select">
        <span class="unseen">{t('find')}</span>
        <input name="text" type="search" class="input" maxLength={200} placeholder={t('findPlaceholder')} />
        <Icon name="search" size={16} />
      </label>
    </form>
  );
}
