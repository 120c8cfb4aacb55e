import { useAccounts } from '../../lib/accounts.ts';
import { useSession } from '../../lib/session.ts';
import { Overview } from './overview.tsx';
import { Welcome } from './welcome.tsx';
import './home.css';

export default function HomePage() {
  const { status } = useSession();
  const { query } = useAccounts();
  return status === 'none' ? <Welcome /> : <Overview query={query} />;
}
