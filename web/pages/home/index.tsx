import { useMessages } from '../../lib/language.tsx';
import type en from './messages.en.ts';
import './home.css';

export default function HomePage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page home">
      <h1>{t('title')}</h1>
    </div>
  );
}
