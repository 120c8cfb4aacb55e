import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './sign-in.css';

export default function SignInPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page sign-in">
      <h1>{t('title')}</h1>
    </div>
  );
}
